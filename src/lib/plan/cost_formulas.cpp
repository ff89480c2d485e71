// Most of these are exact where simulate() has one node and nothing shared, and all blocks are equal; which ones is
// listed in tests/unit/plan/cost_test.cpp. They leave out copies: CostModel::copy is 0 by default.
//
// Sources: R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH, IJHPCA
// 19(1), 2005; E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn: Collective communication: theory, practice, and
// experience, Concurrency and Computation 19(13), 2007; and the papers named in each algorithm's own file.
#include "plan/cost_formulas.hpp"

#include <algorithm>
#include <cmath>

namespace col::plan {
namespace {

// ---- Allreduce ------------------------------------------------------------------------------------------------------

double allreduce_mst(const CostTerms& t) {
  return 2 * t.logarithm() * t.message(t.n) + t.logarithm() * t.add(t.n);
}

double allreduce_bde(const CostTerms& t) {
  const double folding = t.folds() ? 2 * t.message(t.n) + t.add(t.n) : 0;
  return t.floor_logarithm() * (t.message(t.n) + t.add(t.n)) + folding;
}

double allreduce_bde_half(const CostTerms& t) {
  const double folding = t.folds() ? 2 * t.message(t.n) + t.add(t.n) : 0;
  return t.floor_logarithm() * (2 * t.message(t.n) + t.add(t.n)) + folding;
}

double allreduce_ring(const CostTerms& t) {
  return (t.p - 1) * 2 * t.message(t.n / t.p) + t.f() * t.add(t.n);
}

// While adding is faster than the wire.
double allreduce_ring_pipelined(const CostTerms& t) {
  constexpr double kMostSegments = 256;
  const double block = t.n / t.p;
  const double segments = std::min(t.segments(block), kMostSegments);
  const double segment = block / segments;
  const double slower = std::max(t.message(segment), t.add(segment));
  return (t.p - 1) * (t.message(segment) + (segments - 1) * slower + t.add(segment) + t.message(block));
}

double allreduce_rabenseifner(const CostTerms& t) {
  const double f = CostTerms::fraction(t.groups());
  const double folding = t.folds() ? 2 * t.message(t.n) + t.add(t.n) : 0;
  return 2 * (t.floor_logarithm() * t.a + f * t.n * t.b) + f * t.add(t.n) + folding;
}

// An estimate for p > 4: ranks that have added up early are in each other's way in the second round.
double allreduce_direct(const CostTerms& t) {
  return 2 * (t.p - 1) * t.message(t.n / t.p) + t.f() * t.add(t.n);
}

double allreduce_one_shot(const CostTerms& t) {
  return (t.p - 1) * (t.message(t.n) + t.add(t.n));
}

// An estimate: how the two trees meet in a rank's ports differs from rank to rank.
double allreduce_double_tree(const CostTerms& t) {
  const double segments = t.segments(t.n / 2);
  const double segment = t.n / 2 / segments;
  if (t.p == 2) return segments * (2 * t.message(segment) + t.add(segment));
  const double depth = segments - 1 + std::log2(t.p);
  return (4 * depth - 2) * t.message(segment) + (2 * depth - 2) * t.add(segment);
}

double allreduce_ps_central(const CostTerms& t) {
  return (t.p - 1) * (2 * t.message(t.n) + t.add(t.n));
}

double allreduce_ps_sharded(const CostTerms& t) {
  return (t.p - 1) * (2 * t.message(t.n / t.p) + t.add(t.n / t.p));
}

// ---- Broadcast and reduce -------------------------------------------------------------------------------------------

double broadcast_linear(const CostTerms& t) {
  return (t.p - 1) * t.message(t.n);
}

double broadcast_mst(const CostTerms& t) {
  return t.logarithm() * t.message(t.n);
}

// D(k-1)(a + nb) where p is a power of the radix k.
double broadcast_knomial(const CostTerms& t) {
  const int radix = std::min(t.parameters.radix == 0 ? 4 : t.parameters.radix, std::max(t.p, 2));
  int messages = 0;
  for (int ranks = t.p; ranks > 1; ranks = (ranks + radix - 1) / radix) messages += std::min(radix, ranks) - 1;
  return messages * t.message(t.n);
}

double broadcast_chain(const CostTerms& t) {
  const double segments = t.segments(t.n);
  return (t.p - 2 + segments) * t.message(t.n / segments);
}

double broadcast_scatter_allgather(const CostTerms& t) {
  return (t.logarithm() + t.p - 1) * t.a + 2 * t.f() * t.n * t.b;
}

// The root adds one contribution while the next one travels.
double reduce_linear(const CostTerms& t) {
  return t.message(t.n) + (t.p - 2) * std::max(t.message(t.n), t.add(t.n)) + t.add(t.n);
}

double reduce_mst(const CostTerms& t) {
  return t.logarithm() * (t.message(t.n) + t.add(t.n));
}

double reduce_rabenseifner(const CostTerms& t) {
  const double f = CostTerms::fraction(t.groups());
  const double folding = t.folds() ? t.message(t.n) + t.add(t.n) : 0;
  return 2 * (t.floor_logarithm() * t.a + f * t.n * t.b) + f * t.add(t.n) + folding;
}

double reduce_chain(const CostTerms& t) {
  const double segments = t.segments(t.n);
  return (t.p - 1 + segments) * t.message(t.n / segments) + (t.p - 2 + segments) * t.add(t.n / segments);
}

// ---- Allgather and reduce-scatter -----------------------------------------------------------------------------------

double in_steps_of_one_block(const CostTerms& t) {
  return (t.p - 1) * t.message(t.n / t.p);
}

double in_doubling_steps(const CostTerms& t) {
  return t.logarithm() * t.a + t.f() * t.n * t.b;
}

// Folded, rank 0's group and its neighbours have two blocks each: what is exchanged is longer there.
double allgather_doubling(const CostTerms& t) {
  if (!t.folds()) return in_doubling_steps(t);
  const double block = t.n / t.p;
  const int extras = t.p - t.groups();
  double seconds = t.message(block) + t.message(t.n);
  for (int width = 1; width < t.groups(); width *= 2) seconds += t.message((width + std::min(width, extras)) * block);
  return seconds;
}

double allgather_neighbor(const CostTerms& t) {
  return t.p / 2 * t.a + t.f() * t.n * t.b;
}

double reduce_scatter_in_steps(const CostTerms& t) {
  return in_steps_of_one_block(t) + t.f() * t.add(t.n);
}

// The partial sums of the two sides meet at last.
double reduce_scatter_pairwise(const CostTerms& t) {
  return reduce_scatter_in_steps(t) + (t.p > 2 ? t.add(t.n / t.p) : 0);
}

// Folded, the first groups have two blocks each: they are the last to be done with every step.
double reduce_scatter_halving(const CostTerms& t) {
  if (!t.folds()) return in_doubling_steps(t) + t.f() * t.add(t.n);
  const double block = t.n / t.p;
  const int extras = t.p - t.groups();
  double seconds = t.message(t.n) + t.add(t.n) + t.message(block);
  for (int parts = 2; parts <= t.groups(); parts *= 2) {
    const double kept = (t.groups() / parts + (extras + parts - 1) / parts) * block;
    seconds += t.message(kept) + t.add(kept);
  }
  return seconds;
}

// ---- Alltoall -------------------------------------------------------------------------------------------------------

// In step k, the blocks whose distance has bit k.
double alltoall_bruck(const CostTerms& t) {
  double seconds = 0;
  for (int bit = 1; bit < t.p; bit *= 2) {
    int blocks = 0;
    for (int distance = 1; distance < t.p; ++distance) blocks += (distance & bit) != 0 ? 1 : 0;
    seconds += t.message(blocks * t.n / t.p);
  }
  return seconds;
}

// ---- Barrier, scan --------------------------------------------------------------------------------------------------

double barrier_dissemination(const CostTerms& t) {
  return t.logarithm() * t.a;
}

double barrier_tree(const CostTerms& t) {
  return 2 * t.logarithm() * t.a;
}

double barrier_central(const CostTerms& t) {
  return 2 * (t.p - 1) * t.a;
}

double scan_linear(const CostTerms& t) {
  return (t.p - 1) * (t.message(t.n) + t.add(t.n));
}

// The last rank adds nothing: what arrives is its result.
double exscan_linear(const CostTerms& t) {
  return (t.p - 1) * t.message(t.n) + (t.p - 2) * t.add(t.n);
}

double scan_doubling(const CostTerms& t) {
  return t.logarithm() * (t.message(t.n) + t.add(t.n));
}

// In round k, if 3 * 2^k < p, some rank has two sums to add up: its own to pass on, and that of the lower ranks. In
// round 0 it has only the first one. For other numbers than powers of two, not all ranks that wait for each other do.
double exscan_doubling(const CostTerms& t) {
  int additions = t.p > 3 ? 1 : 0;
  for (int distance = 2; distance < t.p; distance *= 2) additions += 3 * distance < t.p ? 2 : 1;
  return t.logarithm() * t.message(t.n) + additions * t.add(t.n);
}

constexpr CostFormula kFormulas[] = {
    {Collective::allreduce, "mst", "2L(α + nβ) + Lnγ", allreduce_mst},
    {Collective::allreduce, "bde", "F(α + nβ + nγ); folded: + 2(α + nβ) + nγ", allreduce_bde},
    {Collective::allreduce, "bde_half", "F(2α + 2nβ + nγ); folded: + 2(α + nβ) + nγ", allreduce_bde_half},
    {Collective::allreduce, "ring", "2(p-1)α + 2fnβ + fnγ", allreduce_ring},
    {Collective::allreduce, "ring_pipelined", "(p-1)(S+1)α + 2fnβ + fnγ/S, adding being faster than the wire",
     allreduce_ring_pipelined},
    {Collective::allreduce, "rabenseifner", "2Fα + 2hnβ + hnγ; folded: + 2(α + nβ) + nγ", allreduce_rabenseifner},
    {Collective::allreduce, "direct", "about 2(p-1)α + 2fnβ + fnγ", allreduce_direct},
    {Collective::allreduce, "one_shot", "(p-1)(α + nβ + nγ)", allreduce_one_shot},
    {Collective::allreduce, "double_tree", "about (4D-2)(α + sβ) + (2D-2)sγ, s = n/2S, D = S-1 + log2 p",
     allreduce_double_tree},
    {Collective::allreduce, "ps_central", "2(p-1)(α + nβ) + (p-1)nγ", allreduce_ps_central},
    {Collective::allreduce, "ps_sharded", "2(p-1)α + 2fnβ + fnγ", allreduce_ps_sharded},
    {Collective::broadcast, "linear", "(p-1)(α + nβ)", broadcast_linear},
    {Collective::broadcast, "mst", "L(α + nβ)", broadcast_mst},
    {Collective::broadcast, "knomial", "D(k-1)(α + nβ), D = ⌈log_k p⌉", broadcast_knomial},
    {Collective::broadcast, "chain_pipelined", "(p-2+S)(α + nβ/S)", broadcast_chain},
    {Collective::broadcast, "scatter_allgather", "(L+p-1)α + 2fnβ", broadcast_scatter_allgather},
    {Collective::reduce, "linear", "(p-1)(α + nβ) + nγ, adding being faster than the wire", reduce_linear},
    {Collective::reduce, "mst", "L(α + nβ + nγ)", reduce_mst},
    {Collective::reduce, "rabenseifner", "2Fα + 2hnβ + hnγ; folded: + α + nβ + nγ", reduce_rabenseifner},
    {Collective::reduce, "chain_pipelined", "(p-1+S)(α + nβ/S) + (p-2+S)nγ/S", reduce_chain},
    {Collective::allgather, "ring", "(p-1)α + fnβ", in_steps_of_one_block},
    {Collective::allgather, "doubling", "Lα + fnβ; folded: (F+2)α + about 2nβ", allgather_doubling},
    {Collective::allgather, "bruck", "Lα + fnβ", in_doubling_steps},
    {Collective::allgather, "direct", "(p-1)α + fnβ", in_steps_of_one_block},
    {Collective::allgather, "neighbor", "(p/2)α + fnβ", allgather_neighbor},
    {Collective::reduce_scatter, "ring", "(p-1)α + fnβ + fnγ", reduce_scatter_in_steps},
    {Collective::reduce_scatter, "halving", "Lα + fnβ + fnγ; folded: (F+2)α + about 2nβ + 2nγ", reduce_scatter_halving},
    {Collective::reduce_scatter, "pairwise", "(p-1)α + fnβ + nγ", reduce_scatter_pairwise},
    {Collective::reduce_scatter, "direct", "(p-1)α + fnβ + fnγ", reduce_scatter_in_steps},
    {Collective::gather, "linear", "(p-1)α + fnβ", in_steps_of_one_block},
    {Collective::gather, "binomial", "Lα + fnβ", in_doubling_steps},
    {Collective::scatter, "linear", "(p-1)α + fnβ", in_steps_of_one_block},
    {Collective::scatter, "binomial", "Lα + fnβ", in_doubling_steps},
    {Collective::alltoall, "linear", "(p-1)α + fnβ", in_steps_of_one_block},
    {Collective::alltoall, "pairwise", "(p-1)α + fnβ", in_steps_of_one_block},
    {Collective::alltoall, "bruck", "Lα + about (n/2)Lβ", alltoall_bruck},
    {Collective::barrier, "dissemination", "Lα", barrier_dissemination},
    {Collective::barrier, "tree", "2Lα", barrier_tree},
    {Collective::barrier, "central", "2(p-1)α", barrier_central},
    {Collective::scan, "linear", "(p-1)(α + nβ + nγ)", scan_linear},
    {Collective::scan, "doubling", "L(α + nβ + nγ)", scan_doubling},
    {Collective::exscan, "linear", "(p-1)(α + nβ) + (p-2)nγ", exscan_linear},
    {Collective::exscan, "doubling", "L(α + nβ) + 2(L-1)nγ", exscan_doubling},
};

}  // namespace

std::span<const CostFormula> cost_formulas() noexcept {
  return kFormulas;
}

const CostFormula* find_cost_formula(const Algorithm& algorithm) noexcept {
  for (const CostFormula& formula : kFormulas) {
    if (formula.collective == algorithm.collective && formula.algorithm == algorithm.name) return &formula;
  }
  return nullptr;
}

}  // namespace col::plan

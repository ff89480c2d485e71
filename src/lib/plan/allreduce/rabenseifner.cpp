// Rabenseifner's allreduce: reduce-scatter by recursive halving, then allgather by recursive doubling.
//
// In step k two ranks whose numbers differ in bit k share the blocks they both still work on: each sends the half that
// it gives up and adds what it gets to the half it keeps. After log2 p steps a rank has one complete block; the same
// steps backwards put all blocks everywhere. Neighbours meet first, so the sums are always of neighbouring ranks.
//
//   4 ranks, the blocks each one works on:
//     step     rank 0    rank 1    rank 2    rank 3
//      -       0 1 2 3   0 1 2 3   0 1 2 3   0 1 2 3   1 contribution
//      0       0 1       2 3       0 1       2 3       of 2 ranks:  0 <-> 1, 2 <-> 3
//      1       0         2         1         3         of 4 ranks:  0 <-> 2, 1 <-> 3
//      1       0 1       2 3       0 1       2 3       complete, on the way back
//      0       0 1 2 3   0 1 2 3   0 1 2 3   0 1 2 3
//
// Any other number of ranks is folded to a power of two first (folding.hpp): the extra of a group hands in its input
// before and is told the result after.
//
// Steps: 2 log2 p; otherwise 2 floor(log2 p) + 2. Bytes on the wire, per rank: 2n(p-1)/p, the least possible (folded:
// up to 2n more). Cost: 2La + 2fnb + fng, f = (p-1)/p; folded, with q the power of two and f = (q-1)/q,
// (2 log2 q + 2)a + (2f+2)nb + (1+f)ng.
// Wins: long vectors on many ranks, powers of two above all. Limits: any p.
// Source: R. Rabenseifner: Optimization of collective reduction operations, ICCS 2004.
// Tested by: tests/unit/plan/algorithms_test.cpp, with every other builder.
#include "plan/blocks.hpp"
#include "plan/cost_terms.hpp"
#include "plan/folding.hpp"
#include "plan/support.hpp"

namespace col::plan::allreduce {
namespace {

struct Rabenseifner {
  PlanRequest request;
  Folding folding;
  Blocks blocks;  // one per group
  int group;      // of this rank
  Slice input, output;
  Slice sum = {};      // the blocks at work, each at its own place
  Slice landing = {};  // a partner's partial sums of the half that we keep
  Slice raw = {};      // another rank's bare input, or half of it

  int steps() const { return folding.steps(); }
  std::size_t rounds() const { return static_cast<std::size_t>(2 * steps() + (folding.folds() ? 2 : 0)); }

  Slice kept(int by, int cuts, const Slice& vector) const { return half_of(folding, blocks, by, cuts, vector); }

  void operator()(std::size_t index, Round& round) const {
    if (folding.folds() && index == 0) return fold_in(folding, request.rank, input, raw, sum, round);
    if (folding.folds() && index + 1 == rounds()) return fold_out(folding, request.rank, output, round);
    if (folding.is_extra(request.rank)) return;
    const int i = static_cast<int>(index) - (folding.folds() ? 1 : 0);
    if (i < steps())
      halve(i, round);
    else
      gather(2 * steps() - 1 - i, round);
  }

  void halve(int k, Round& round) const {
    const int partner = group ^ (1 << k);
    const int peer = folding.first_rank(partner);
    const Slice held = k == 0 && !folding.is_double(group) ? input : sum;
    const Slice ours = kept(group, k + 1, held);
    const Slice theirs = (k == 0 && !folding.is_double(partner) ? raw : landing).part(0, ours.count);
    round.send(peer, kept(partner, k + 1, held));
    round.recv(peer, theirs);
    const Slice to = kept(group, k + 1, sum);
    round.reduce(to, group < partner ? ours : theirs, group < partner ? theirs : ours);
    if (k == steps() - 1) round.convert(kept(group, k + 1, output), to);
  }
  void gather(int k, Round& round) const {
    const int partner = group ^ (1 << k);
    round.send(folding.first_rank(partner), kept(group, k + 1, output));
    round.recv(folding.first_rank(partner), kept(partner, k + 1, output));
  }
};

Plan build_rabenseifner(const PlanRequest& request) {
  if (request.size == 1) return alone(request);
  const Folding folding(request.size);
  Rabenseifner plan{.request = request,
                    .folding = folding,
                    .blocks = Blocks::even(request.count, static_cast<std::size_t>(folding.groups())),
                    .group = folding.group_of(request.rank),
                    .input = {Buffer::input, 0, request.count},
                    .output = {Buffer::output, 0, request.count}};
  Scratch scratch;
  if (folding.is_extra(request.rank)) return make_plan(plan.rounds(), scratch, plan);
  const std::size_t half = plan.kept(0, 1, plan.output).count;  // the longer one
  const std::size_t longest_raw = folding.has_extra(request.rank) ? request.count : half;
  const bool raw_is_wide = raw_buffer(request) == Buffer::wide;
  plan.sum = request.widens ? scratch.take(Buffer::wide, request.count) : plan.output;
  plan.landing = scratch.take(Buffer::wide, raw_is_wide ? longest_raw : half);
  plan.raw = raw_is_wide ? plan.landing : scratch.take(Buffer::scratch, longest_raw);
  return make_plan(plan.rounds(), scratch, plan);
}

double allreduce_rabenseifner(const CostTerms& t) {
  const double f = CostTerms::fraction(t.groups());
  return 2 * (t.floor_logarithm() * t.a + f * t.n * t.b) + f * t.add(t.n) + t.folding();
}

}  // namespace

extern constinit const Algorithm rabenseifner = {
    .collective = Collective::allreduce,
    .name = "rabenseifner",
    .summary = "halving reduce-scatter, doubling allgather; few steps and fewest bytes, for long vectors",
    .order = FoldOrder::contiguous,
    .build = build_rabenseifner,
    .cost = {.text = "2Fα + 2hnβ + hnγ; folded: + 2(α + nβ) + nγ", .seconds = allreduce_rabenseifner},
};

}  // namespace col::plan::allreduce

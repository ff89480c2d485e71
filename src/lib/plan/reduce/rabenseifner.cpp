// Rabenseifner's reduce: reduce-scatter by halving the vector, then gather the blocks to the root.
//
// Step k of the first half: groups 2^k apart swap halves of what they both still have, and each adds the half that it
// keeps. Neighbours come first, so what meets is always the sum of two neighbouring ranges of ranks, and the lower
// range is the left operand. Then the same steps backwards: whoever is on the wrong side of the root's bit hands its
// results over. Beyond a power of two, the first ranks pair up beforehand, and one of each pair (never the root) is
// done.
//
//   4 ranks, root 0, blocks 0 to 3:
//     round   rank 0         rank 1         rank 2         rank 3
//       0     23 -> 1        01 -> 0        23 -> 3        01 -> 2      contributions of two ranks
//       1     1 -> 2         3 -> 3         0 -> 0         2 -> 1       of all; has 0, 2, 1, 3
//       2                                   1 -> 0         3 -> 1
//       3                    23 -> 0
//
// Steps: 2L. Bytes on the wire, per rank: 2n(p-1)/p at most. Cost: 2La + 2fnb + fng, f = (p-1)/p; beyond a power of
// two, with L = floor(log2 p), (2L+1)a + (2f+1)nb + (1+f)ng. Wins: long vectors, many ranks. Limits: none; any p, any
// root, any associative operator. Source: R. Rabenseifner: Optimization of collective reduction operations, ICCS 2004.
// Tested by: tests/unit/plan/algorithms_test.cpp.
#include "plan/blocks.hpp"
#include "plan/cost_terms.hpp"
#include "plan/folding.hpp"
#include "plan/support.hpp"

namespace col::plan::reduce {
namespace {

struct Rabenseifner {
  PlanRequest request;
  Folding folding;
  Blocks blocks;        // one per group
  Slice sum = {};       // what this rank has combined, each element at its own place
  Slice landing = {};   // another group's partial result
  Slice raw = {};       // another rank's bare input
  Slice finished = {};  // results, each element at its own place

  Slice kept(int group, int cuts, const Slice& vector) const { return half_of(folding, blocks, group, cuts, vector); }
  // The rank that acts for a group: the root for its own.
  int agent(int group) const {
    return group == folding.group_of(request.root) ? request.root : folding.first_rank(group);
  }
  Slice input() const { return {Buffer::input, 0, request.count}; }

  // Receives from `peer` what is added to `ours`, at the same place in the sum.
  void receive_and_add(int peer, bool is_bare, const Slice& ours, const Slice& total, Round& round) const {
    const bool total_is_unused = ours.buffer == Buffer::input;
    const bool total_is_input = request.in_place && total.buffer == Buffer::output;
    Slice theirs;
    if (is_bare && raw_buffer(request) == Buffer::scratch)
      theirs = {raw.buffer, raw.offset, total.count};
    else if (total_is_unused && !total_is_input)
      theirs = total;
    else
      theirs = {landing.buffer, landing.offset, total.count};
    round.recv(peer, theirs);
    round.reduce(total, peer < request.rank ? theirs : ours, peer < request.rank ? ours : theirs);
  }

  void pair_up(int group, Round& round) const {
    if (!folding.is_double(group)) return;
    const int other = 2 * folding.first_rank(group) + 1 - agent(group);
    if (request.rank == other) return round.send(agent(group), input());
    receive_and_add(other, true, input(), sum, round);
  }

  void halve(int group, int step, Round& round) const {
    const int partner = group ^ (1 << step);
    const Slice from = step == 0 && !folding.is_double(group) ? input() : sum;
    const Slice total = kept(group, step + 1, sum);
    round.send(agent(partner), kept(partner, step + 1, from));
    receive_and_add(agent(partner), step == 0 && !folding.is_double(partner), kept(group, step + 1, from), total,
                    round);
    if (step + 1 == folding.steps()) round.convert(kept(group, step + 1, finished), total);
  }

  void gather(int group, int bit, Round& round) const {
    const int away = group ^ folding.group_of(request.root);
    if (away >> (bit + 1) != 0) return;  // has handed its results over
    const int partner = group ^ (1 << bit);
    if ((away >> bit) & 1)
      round.send(agent(partner), kept(group, bit + 1, finished));
    else
      round.recv(agent(partner), kept(partner, bit + 1, finished));
  }

  void operator()(std::size_t index, Round& round) const {
    const int group = folding.group_of(request.rank);
    const int step = static_cast<int>(index) - (folding.folds() ? 1 : 0);
    if (step < 0) return pair_up(group, round);
    if (step < folding.steps()) return halve(group, step, round);
    gather(group, 2 * folding.steps() - 1 - step, round);
  }
};

Plan build_rabenseifner(const PlanRequest& request) {
  if (request.size == 1) return alone(request);
  const Folding folding(request.size);
  Rabenseifner plan{.request = request,
                    .folding = folding,
                    .blocks = Blocks::even(request.count, static_cast<std::size_t>(folding.groups()))};
  Scratch scratch;
  const int group = folding.group_of(request.rank);
  if (request.rank != plan.agent(group)) return make_plan(1, scratch, plan);
  const bool is_root = request.rank == request.root;
  const Slice output{Buffer::output, 0, request.count};
  const std::size_t half = plan.kept(0, 1, output).count;
  const bool sum_is_output = is_root && !request.widens;
  plan.sum = sum_is_output ? output : scratch.take(Buffer::wide, request.count);
  plan.landing = scratch.take(Buffer::wide, sum_is_output && request.in_place ? request.count : half);
  if (raw_buffer(request) == Buffer::scratch)
    plan.raw = scratch.take(Buffer::scratch, folding.is_double(group) ? request.count : half);
  if (is_root)
    plan.finished = output;
  else
    plan.finished = request.widens ? scratch.take(Buffer::scratch, request.count) : plan.sum;
  return make_plan(static_cast<std::size_t>(2 * folding.steps() + (folding.folds() ? 1 : 0)), scratch, plan);
}

double reduce_rabenseifner(const CostTerms& t) {
  const double f = CostTerms::fraction(t.groups());
  const double folding = t.folds() ? t.message(t.n) + t.add(t.n) : 0;
  return 2 * (t.floor_logarithm() * t.a + f * t.n * t.b) + f * t.add(t.n) + folding;
}

}  // namespace

extern constinit const Algorithm rabenseifner = {
    .collective = Collective::reduce,
    .name = "rabenseifner",
    .summary = "reduce-scatter by halving, then gather; for long vectors",
    .order = FoldOrder::contiguous,
    .build = build_rabenseifner,
    .cost = {.text = "2Fα + 2hnβ + hnγ; folded: + α + nβ + nγ", .seconds = reduce_rabenseifner},
};

}  // namespace col::plan::reduce

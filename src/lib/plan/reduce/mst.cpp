// Minimum-spanning-tree reduce: halve the range of ranks, reduce each half to one rank, combine the two.
//
// The range is cut in the middle; the half without the root is reduced to the rank at its far end, which then sends its
// result to the root. Both halves do the same inside, so what meets is always the sum of two neighbouring ranges, and
// the lower range is the left operand, whatever the root.
//
//   4 ranks, root 0:
//     round   rank 0       rank 1       rank 2       rank 3
//       0     0+1     <--- 1            2       ---> 2+3
//       1     (0+1)+(2+3) <------------------------- 2+3
//
// Steps: L = ceil(log2 p). Bytes on the wire: n per step, n(p-1) in all. Cost: L(a + nb + ng).
// Wins: short vectors. Limits: none; any p, any root, any associative operator.
// Source: E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn: Collective communication: theory, practice, and
// experience, Concurrency and Computation 19(13), 2007. Tested by: tests/unit/plan/algorithms_test.cpp.
#include "plan/cost_terms.hpp"
#include "plan/support.hpp"
#include "plan/trees.hpp"

namespace col::plan::reduce {
namespace {

struct Mst {
  PlanRequest request;
  Slice input;
  Slice sum;      // what this rank has combined so far
  Slice landing;  // another rank's partial result
  Slice raw;      // another rank's bare input

  // Where the other half's value arrives. The sum's own place will do before it holds anything, unless that is where
  // our input still is.
  Slice landing_of(const Halving& range) const {
    if (range.other_size() == 1 && raw_buffer(request) == Buffer::scratch) return raw;
    const bool sum_is_unused = range.root_size() == 1;
    const bool sum_is_input = request.in_place && sum.buffer == Buffer::output;
    return sum_is_unused && !sum_is_input ? sum : landing;
  }

  void operator()(std::size_t index, Round& round) const {
    const int depth = ceil_log2(request.size) - 1 - static_cast<int>(index);
    const auto range = halving(request.rank, request.root, request.size, depth);
    if (!range) return;
    if (request.rank == range->other) round.send(range->root, range->other_size() == 1 ? input : sum);
    if (request.rank != range->root) return;
    const Slice theirs = landing_of(*range);
    const Slice ours = range->root_size() == 1 ? input : sum;
    round.recv(range->other, theirs);
    round.reduce(sum, range->root_is_left() ? ours : theirs, range->root_is_left() ? theirs : ours);
    if (depth == 0) round.convert({Buffer::output, 0, request.count}, sum);
  }
};

Plan build_mst(const PlanRequest& request) {
  if (request.size == 1) return alone(request);
  const Slice output{Buffer::output, 0, request.count};
  const Slice wide{Buffer::wide, 0, request.count};
  const int levels = ceil_log2(request.size);
  Mst mst{.request = request,
          .input = {Buffer::input, 0, request.count},
          .sum = request.rank == request.root && !request.widens ? output : wide,
          .landing = wide,
          .raw = {Buffer::scratch, 0, request.count}};
  if (mst.sum == wide) mst.landing.offset = request.count;
  Plan plan{.rounds = static_cast<std::size_t>(levels)};
  const auto need = [&plan](const Slice& slice) {
    std::size_t& used = slice.buffer == Buffer::wide ? plan.wide : plan.scratch;
    if (slice.buffer != Buffer::output) used = std::max(used, slice.offset + slice.count);
  };
  for (int depth = 0; depth < levels; ++depth) {
    const auto range = halving(request.rank, request.root, request.size, depth);
    if (!range || range->root != request.rank) continue;
    need(mst.sum);
    need(mst.landing_of(*range));
  }
  plan.generate = mst;
  return plan;
}

}  // namespace

extern constinit const Algorithm mst = {
    .collective = Collective::reduce,
    .name = "mst",
    .summary = "halves the range of ranks; fewest steps, for short vectors",
    .order = FoldOrder::contiguous,
    .build = build_mst,
    .cost = {.text = "L(α + nβ + nγ)",
             .seconds = [](const CostTerms& t) { return t.logarithm() * (t.message(t.n) + t.add(t.n)); }},
};

}  // namespace col::plan::reduce

// Bruck allgather: the number of blocks that a rank holds doubles in every round, for any number of ranks.
//
// A rank keeps the blocks in the order in which they come to it: its own first, then those of the ranks above it. In
// round k it gives the first 2^k of them to the rank 2^k below, and gets as many, which continue its run, from the rank
// 2^k above. A last round that has less to do sends less.
//
//   5 ranks, the run that each one holds:
//              rank 0      rank 1      rank 2      rank 3      rank 4
//   before     0           1           2           3           4
//   round 0    0 1         1 2         2 3         3 4         4 0
//   round 1    0 1 2 3     1 2 3 4     2 3 4 0     3 4 0 1     4 0 1 2
//   round 2    0 1 2 3 4   1 2 3 4 0   2 3 4 0 1   3 4 0 1 2   4 0 1 2 3
//
// The runs are in scratch, and each piece is copied to its place in the output when it has come; so rank 0, whose run
// is the output, copies nothing. allgatherv is the same with runs of unequal blocks.
//
// With n the bytes of all blocks together, L = ceil(log2 p) and f = (p-1)/p:
// Steps: L. Bytes on the wire, per rank: fn, both the least possible. Cost: La + fnb, and a copy of n.
// Wins: short blocks, any p. Limits: any p; distant partners; the copy, for long vectors.
// Source: J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby: Efficient algorithms for all-to-all communications in
// multiport message-passing systems, IEEE TPDS 8(11), 1997. Tested by: tests/unit/plan/algorithms_test.cpp.
#include "plan/allgather/assembly.hpp"
#include "plan/cost_terms.hpp"
#include "plan/support.hpp"

namespace col::plan::allgather {
namespace {

Plan build_bruck(const PlanRequest& request) {
  if (request.size == 1) return alone(request);
  Scratch scratch;
  const Assembly run(request, request.rank, scratch);
  const auto rounds = static_cast<std::size_t>(ceil_log2(request.size));
  return make_plan(rounds, scratch, [run, rank = request.rank, size = request.size](std::size_t index, Round& round) {
    const int distance = 1 << index;
    const auto held = static_cast<std::size_t>(distance);
    const std::size_t moved = std::min(held, static_cast<std::size_t>(size) - held);
    round.send(shifted(rank, -distance, size), index == 0 ? run.own_input() : run.range(0, moved));
    round.recv(shifted(rank, distance, size), run.range(held, held + moved));
    if (index == 0) run.place_own(round);
    run.deliver(round, held, held + moved);
  });
}

}  // namespace

extern constinit const Algorithm bruck = {
    .collective = Collective::allgather,
    .name = "bruck",
    .summary = "what a rank holds doubles in every round, for any number of ranks; for short vectors",
    .build = build_bruck,
    .cost = {.text = "Lα + fnβ", .seconds = in_doubling_steps},
};

}  // namespace col::plan::allgather

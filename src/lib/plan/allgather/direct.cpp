// Direct allgather: everyone sends its block to everyone, all at once.
//
//   4 ranks, round 0, the only one:
//     rank 0 -> 1, 2, 3     rank 1 -> 2, 3, 0     rank 2 -> 3, 0, 1     rank 3 -> 0, 1, 2
//
// Every rank begins with the one above it, so that nobody is everyone's first target.
//
// With n the bytes of all blocks together and f = (p-1)/p:
// Steps: 1. Messages, per rank: p-1. Bytes on the wire, per rank: fn. Cost with one port: (p-1)a + fnb; where messages
// to different ranks overlap (shared memory, several ports), as little as a + fnb.
// Wins: few ranks; shared memory; blocks of very different lengths, as each crosses the wire once per receiver and
// holds up nobody else. Limits: any p; p(p-1) messages at once flood a network.
// Source: R. Thakur, W. Gropp: Improving the performance of collective operations in MPICH, EuroPVM/MPI 2003 (as the
// obvious way that the others improve on). Tested by: tests/unit/plan/algorithms_test.cpp, with every other builder.
#include "plan/allgather/assembly.hpp"
#include "plan/blocks.hpp"
#include "plan/cost_terms.hpp"
#include "plan/support.hpp"

namespace col::plan::allgather {
namespace {

Plan build_direct(const PlanRequest& request) {
  if (request.size == 1) return alone(request);
  return make_plan(1, Scratch{}, [request](std::size_t, Round& round) {
    const Blocks blocks = Blocks::of_output(request);
    const Slice own = blocks.slice(Buffer::output, request.rank);
    const Slice input{Buffer::input, 0, own.count};
    for (int k = 1; k < request.size; ++k) {
      const int from = shifted(request.rank, -k, request.size);
      round.send(shifted(request.rank, k, request.size), input);
      round.recv(from, blocks.slice(Buffer::output, from));
    }
    if (!request.in_place) round.copy(own, input);
  });
}

}  // namespace

extern constinit const Algorithm direct = {
    .collective = Collective::allgather,
    .name = "direct",
    .summary = "everyone sends to everyone at once; for few ranks, shared memory, and very unequal blocks",
    .build = build_direct,
    .cost = {.text = "(p-1)α + fnβ", .seconds = in_steps_of_one_block},
};

}  // namespace col::plan::allgather

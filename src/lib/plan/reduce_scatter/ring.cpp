// Ring reduce-scatter: every block goes around the ring once, collects all contributions, and ends at its owner.
//
//   4 ranks, what each one sends (block, number of contributions in it):
//     round   rank 0   rank 1   rank 2   rank 3
//       0     3:1      0:1      1:1      2:1
//       1     2:2      3:2      0:2      1:2
//       2     1:3      2:3      3:3      0:3      the last contribution is the owner's
//
// With n the bytes of all blocks together and f = (p-1)/p:
// Steps: p-1. Bytes on the wire, per rank: fn, the least possible; where partial results are wider, all but the first
// round's in the wide type. Cost: (p-1)a + fnb + fng.
// Wins: long vectors; links that dislike distant partners. Needs no more memory than two or three blocks. Limits: any
// p; latency grows with p; the order of addition differs from block to block, so the operator must commute.
// Source: P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations, JPDC 69(2),
// 2009. Tested by: tests/unit/plan/algorithms_test.cpp, with every other builder.
#include "plan/blocks.hpp"
#include "plan/cost_terms.hpp"
#include "plan/reduce_scatter/alone.hpp"
#include "plan/support.hpp"

namespace col::plan::reduce_scatter {
namespace {

struct Ring {
  PlanRequest request;
  Blocks blocks;
  Slice raw;         // the left neighbour's bare block of round 0
  Slice partial[2];  // the block at work, by parity of the round: one is sent on while the next arrives

  Slice block(const Slice& region, std::size_t b) const { return region.part(0, blocks.count(b)); }

  void operator()(std::size_t index, Round& round) const {
    const int p = request.size;
    const int k = static_cast<int>(index);
    const auto sent = static_cast<std::size_t>(shifted(request.rank, -k - 1, p));
    const auto arriving = static_cast<std::size_t>(shifted(request.rank, -k - 2, p));
    const Slice here = block(partial[k % 2], arriving);
    const Slice landing = k == 0 ? block(raw, arriving) : here;
    round.send(shifted(request.rank, 1, p),
               k == 0 ? blocks.slice(Buffer::input, sent) : block(partial[(k + 1) % 2], sent));
    round.recv(shifted(request.rank, -1, p), landing);
    const bool complete = k == p - 2;  // and so this rank's own block: in place, output is what is added here
    const Slice result{Buffer::output, 0, here.count};
    const Slice sum = complete && !request.widens ? result : here;
    round.reduce(sum, landing, blocks.slice(Buffer::input, arriving));
    if (complete) round.convert(result, sum);
  }
};

Plan build_ring(const PlanRequest& request) {
  if (request.size == 1) return alone(request);
  Ring ring{.request = request, .blocks = Blocks::of_input(request), .raw = {}, .partial = {}};
  Scratch scratch;
  const std::size_t most = ring.blocks.largest();
  ring.partial[0] = scratch.take(Buffer::wide, most);
  ring.partial[1] = scratch.take(Buffer::wide, most);
  ring.raw = raw_buffer(request) == Buffer::scratch ? scratch.take(Buffer::scratch, most) : ring.partial[0];
  return make_plan(static_cast<std::size_t>(request.size - 1), scratch, ring);
}

}  // namespace

extern constinit const Algorithm ring = {
    .collective = Collective::reduce_scatter,
    .name = "ring",
    .summary = "blocks collect contributions around a ring; fewest bytes and little memory, for long vectors",
    .order = FoldOrder::any,
    .parameters = "",
    .refuse = never_refuses,
    .build = build_ring,
    .cost = {.text = "(p-1)α + fnβ + fnγ", .seconds = reduce_scatter_in_steps},
};

}  // namespace col::plan::reduce_scatter

// Ring allreduce: reduce-scatter around the ring, then allgather around the ring.
//
// The vector is cut into p blocks. In p-1 rounds every rank passes the block it has just added to on to its right
// neighbour, so that block b, which starts at rank b, has been around and is complete at rank b-1; in p-1 more rounds
// the complete blocks go around once more.
//
//   4 ranks, what each one sends (block, number of contributions in it):
//     round   rank 0   rank 1   rank 2   rank 3
//       0     0:1      1:1      2:1      3:1
//       1     3:2      0:2      1:2      2:2
//       2     2:3      3:3      0:3      1:3
//       3     1:4      2:4      3:4      0:4      complete blocks from here on
//       4     0:4      1:4      2:4      3:4
//       5     3:4      0:4      1:4      2:4
//
// Steps: 2(p-1). Bytes on the wire, per rank: 2n(p-1)/p, the least possible. Cost: 2(p-1)a + 2fnb + fng, f = (p-1)/p.
// Wins: long vectors, few ranks, or links that dislike distant partners. Limits: any p; latency grows with p; the order
// of addition differs from block to block, so the operator must commute.
// Source: P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations, JPDC 69(2),
// 2009. Tested by: tests/unit/plan/algorithms_test.cpp, with every other builder.
#include "plan/blocks.hpp"
#include "plan/cost_terms.hpp"
#include "plan/support.hpp"

namespace col::plan::allreduce {
namespace {

struct Ring {
  PlanRequest request;
  Blocks blocks;
  Slice raw;         // the left neighbour's bare block of round 0
  Slice partial[2];  // the block at work, by parity of the round: one is sent on while the next arrives

  Slice block(const Slice& region, std::size_t b) const { return region.part(0, blocks.count(b)); }

  void operator()(std::size_t index, Round& round) const {
    const int p = request.size;
    const int right = shifted(request.rank, 1, p);
    const int left = shifted(request.rank, -1, p);
    const int last = p - 1;  // rounds of each half
    const int k = static_cast<int>(index);
    if (k < last) {
      const auto sent = static_cast<std::size_t>(shifted(request.rank, -k, p));
      const auto arriving = static_cast<std::size_t>(shifted(request.rank, -k - 1, p));
      const Slice here = block(partial[k % 2], arriving);
      const Slice landing = k == 0 ? block(raw, arriving) : here;
      round.send(right, k == 0 ? blocks.slice(Buffer::input, sent) : block(partial[(k + 1) % 2], sent));
      round.recv(left, landing);
      const Slice own = blocks.slice(Buffer::input, arriving);
      const Slice result = blocks.slice(Buffer::output, arriving);
      const bool complete = k == last - 1;
      const Slice sum = complete && !request.widens ? result : here;
      round.reduce(sum, landing, own);
      if (complete) round.convert(result, sum);
    } else {
      round.send(right,
                 blocks.slice(Buffer::output, static_cast<std::size_t>(shifted(request.rank, 1 - (k - last), p))));
      round.recv(left, blocks.slice(Buffer::output, static_cast<std::size_t>(shifted(request.rank, -(k - last), p))));
    }
  }
};

Plan build_ring(const PlanRequest& request) {
  if (request.size == 1) return alone(request);
  Ring ring{.request = request,
            .blocks = Blocks::even(request.count, static_cast<std::size_t>(request.size)),
            .raw = {},
            .partial = {}};
  Scratch scratch;
  const std::size_t most = ring.blocks.largest();
  ring.partial[0] = scratch.take(Buffer::wide, most);
  ring.partial[1] = scratch.take(Buffer::wide, most);
  ring.raw = raw_buffer(request) == Buffer::scratch ? scratch.take(Buffer::scratch, most) : ring.partial[0];
  return make_plan(2 * static_cast<std::size_t>(request.size - 1), scratch, ring);
}

double allreduce_ring(const CostTerms& t) {
  return (t.p - 1) * 2 * t.message(t.n / t.p) + t.f() * t.add(t.n);
}

}  // namespace

extern constinit const Algorithm ring = {
    .collective = Collective::allreduce,
    .name = "ring",
    .summary = "reduce-scatter and allgather around a ring; fewest bytes, for long vectors",
    .order = FoldOrder::any,
    .parameters = "",
    .refuse = never_refuses,
    .build = build_ring,
    .cost = {.text = "2(p-1)α + 2fnβ + fnγ", .seconds = allreduce_ring},
};

}  // namespace col::plan::allreduce

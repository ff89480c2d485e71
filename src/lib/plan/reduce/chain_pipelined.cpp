// Pipelined chain reduce: segments run through all ranks in rank order, and from the last one to the root.
//
// Rank r adds its own input to what comes from rank r-1 and passes the sum on while the next segment arrives. The chain
// is 0, 1, …, p-1 for every root, so that each element is folded from the left in rank order; the last rank, which has
// the results, sends them to the root, segment by segment.
//
//   4 ranks, root 0, 2 segments (segment : contributions in it):
//     time    rank 0    rank 1    rank 2    rank 3
//       0     0:1 ->
//       1     1:1 ->    0:2 ->
//       2               1:2 ->    0:3 ->
//       3                         1:3 ->    0:4 -> 0
//       4                                   1:4 -> 0
//
// Steps: p-1+S for S segments of s; one less when the last rank is the root. Bytes on the wire, per rank: n.
// Cost: (p-1+S)(a + sb + sg), S = n/s. A root between the ends has two segments a step to receive: up to 2nb.
// Wins: long vectors and few ranks, and long vectors that must be folded in rank order. Limits: any p, any root;
// latency grows with p. Source: J. Worringen: Pipelining and overlapping for MPI collective operations, LCN 2003.
// Tested by: tests/unit/plan/algorithms_test.cpp.
#include "plan/blocks.hpp"
#include "plan/cost_terms.hpp"
#include "plan/support.hpp"

namespace col::plan::reduce {
namespace {

struct Chain {
  PlanRequest request;
  Blocks segments;
  Slice raw = {};          // rank 0's bare segment
  Slice partial[2] = {};   // the segment at work, by parity of the round: one is sent on while the next arrives
  Slice finished[2] = {};  // on the last rank: results on their way to the root

  int last() const { return request.size - 1; }
  bool is_root() const { return request.rank == request.root; }
  Slice part(const Slice& region, std::size_t i) const { return region.part(0, segments.count(i)); }

  void receive_and_add(std::size_t i, Round& round) const {
    const Slice result = segments.slice(Buffer::output, i);
    const bool is_bare = request.rank == 1 && raw_buffer(request) == Buffer::scratch;
    const Slice landing = part(is_bare ? raw : partial[i % 2], i);
    const bool is_result = request.rank == last() && is_root();
    const Slice sum = is_result && !request.widens ? result : part(partial[i % 2], i);
    round.recv(request.rank - 1, landing);
    round.reduce(sum, landing, segments.slice(Buffer::input, i));
    if (request.rank == last()) round.convert(is_result ? result : part(finished[i % 2], i), sum);
  }

  // Rounds between a segment's leaving a root that is not the last rank and its coming back as a result. Rank 0 needs
  // no round to receive it first.
  std::size_t way_round() const {
    return static_cast<std::size_t>(request.rank == 0 ? request.size - 1 : request.size - request.rank);
  }

  std::size_t rounds() const {
    const std::size_t count = segments.parts();
    if (is_root()) return request.rank == last() ? count : count + way_round();
    return request.rank == 0 ? count : count + 1;
  }

  void operator()(std::size_t index, Round& round) const {
    const std::size_t count = segments.parts();
    if (request.rank == 0) {
      if (index < count) round.send(1, segments.slice(Buffer::input, index));
    } else {
      if (index < count) receive_and_add(index, round);
      if (index >= 1 && index - 1 < count) {
        const std::size_t sent = index - 1;
        if (request.rank != last())
          round.send(request.rank + 1, part(partial[sent % 2], sent));
        else if (!is_root())
          round.send(request.root, part(finished[sent % 2], sent));
      }
    }
    if (is_root() && request.rank != last() && index >= way_round())
      round.recv(last(), segments.slice(Buffer::output, index - way_round()));
  }
};

Plan build_chain_pipelined(const PlanRequest& request) {
  if (request.size == 1) return alone(request);
  if (request.count == 0) return {};
  Chain chain{.request = request, .segments = segments(request, request.count)};
  Scratch scratch;
  if (request.rank != 0) {
    const std::size_t most = chain.segments.largest();
    const bool sends_results = request.rank == chain.last() && !chain.is_root();
    for (int i : {0, 1}) {
      chain.partial[i] = scratch.take(Buffer::wide, most);
      const bool takes_room = sends_results && request.widens;
      chain.finished[i] = takes_room ? scratch.take(Buffer::scratch, most) : chain.partial[i];
    }
    if (request.rank == 1 && raw_buffer(request) == Buffer::scratch) chain.raw = scratch.take(Buffer::scratch, most);
  }
  return make_plan(chain.rounds(), scratch, chain);
}

double reduce_chain(const CostTerms& t) {
  const double segments = t.segments(t.n);
  return (t.p - 1 + segments) * t.message(t.n / segments) + (t.p - 2 + segments) * t.add(t.n / segments);
}

}  // namespace

extern constinit const Algorithm chain_pipelined = {
    .collective = Collective::reduce,
    .name = "chain_pipelined",
    .summary = "segments through all ranks in rank order; for long vectors and few ranks",
    .order = FoldOrder::rank_order,
    .parameters = "segment",
    .build = build_chain_pipelined,
    .cost = {.text = "(p-1+S)(α + nβ/S) + (p-2+S)nγ/S", .seconds = reduce_chain},
};

}  // namespace col::plan::reduce

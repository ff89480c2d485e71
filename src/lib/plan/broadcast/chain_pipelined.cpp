// Pipelined chain broadcast: segments pass from each rank to the next, one behind the other.
//
// Ranks form a chain that starts at the root. A rank sends a segment on while it receives the next one, so that all
// links are busy once the first segment has reached the end.
//
//   4 ranks, root 0, 3 segments, which one each rank sends:
//     time    rank 0   rank 1   rank 2   rank 3
//       0     0
//       1     1        0
//       2     2        1        0
//       3              2        1
//       4                       2
//
// Steps: p-2+S for S segments of s. Bytes on the wire, per rank: n. Cost: (p-2+S)(a + sb), S = n/s; the best s is
// sqrt(na / ((p-2)b)) and gives (sqrt((p-2)a) + sqrt(nb))^2.
// Wins: long vectors, few ranks: nothing sends less than n out of the root. Limits: any p, any root; latency grows
// with p. The default segment is fixed, not the best one: this code does not know a and b.
// Source: R. van de Geijn, J. Watts: SUMMA: scalable universal matrix multiplication algorithm, Concurrency: Practice
// and Experience 9(4), 1997 (section on pipelined broadcast). Tested by: tests/unit/plan/algorithms_test.cpp.
#include "plan/blocks.hpp"
#include "plan/cost_terms.hpp"
#include "plan/support.hpp"

namespace col::plan::broadcast {
namespace {

struct Chain {
  PlanRequest request;
  Blocks segments;

  void operator()(std::size_t index, Round& round) const {
    const int position = shifted(request.rank, -request.root, request.size);
    const bool is_first = position == 0;
    const bool is_last = position == request.size - 1;
    if (!is_first && index < segments.parts())
      round.recv(shifted(request.rank, -1, request.size), segments.slice(Buffer::output, index));
    if (is_last || (!is_first && index == 0)) return;
    const std::size_t sent = is_first ? index : index - 1;
    if (sent < segments.parts())
      round.send(shifted(request.rank, 1, request.size), segments.slice(Buffer::output, sent));
  }
};

Plan build_chain_pipelined(const PlanRequest& request) {
  if (request.size == 1 || request.count == 0) return {};
  const Chain chain{.request = request, .segments = segments(request, request.count)};
  const int position = shifted(request.rank, -request.root, request.size);
  const bool forwards = position != 0 && position != request.size - 1;
  return make_plan(chain.segments.parts() + (forwards ? 1 : 0), {}, chain);
}

double broadcast_chain(const CostTerms& t) {
  const double segments = t.segments(t.n);
  return (t.p - 2 + segments) * t.message(t.n / segments);
}

}  // namespace

extern constinit const Algorithm chain_pipelined = {
    .collective = Collective::broadcast,
    .name = "chain_pipelined",
    .summary = "segments down a chain of ranks; for long vectors and few ranks",
    .parameters = "segment",
    .build = build_chain_pipelined,
    .cost = {.text = "(p-2+S)(α + nβ/S)", .seconds = broadcast_chain},
};

}  // namespace col::plan::broadcast

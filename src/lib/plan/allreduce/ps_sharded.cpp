// Sharded parameter server: every rank is a worker, and the server of one shard of the vector.
//
// A server serves one worker per round. In round k of the push phase rank r sends shard r+k to its server; what arrives
// is kept, and folded in rank order once all of it is there. The pull phase hands the complete shards out the same way.
//
//   4 ranks, what each one sends (shard→server, then shard→worker):
//     round   rank 0   rank 1   rank 2   rank 3
//       0     1→1      2→2      3→3      0→0       push
//       1     2→2      3→3      0→0      1→1
//       2     3→3      0→0      1→1      2→2       then each server adds up
//       3     0→1      1→2      2→3      3→0       pull
//       4     0→2      1→3      2→0      3→1
//       5     0→3      1→0      2→1      3→2
//
// Steps: 2(p-1). Bytes on the wire, per rank: 2n(p-1)/p, the least possible. Cost: 2(p-1)a + 2fnb + fng, f = (p-1)/p:
// that of a ring, so what such a server loses in practice is latency and copies, not volume. Wins: where a ring would,
// when the sum has to be in rank order. Limits: any p; every rank talks to every other; scratch of n.
// Source: M. Li et al.: Scaling distributed machine learning with the parameter server, OSDI 2014.
// Tested by: tests/unit/plan/algorithms_test.cpp, with every other builder.
#include "plan/cost_terms.hpp"
#include "plan/rank_order.hpp"
#include "plan/support.hpp"

namespace col::plan::allreduce {
namespace {

Plan build_ps_sharded(const PlanRequest& request) {
  if (request.size == 1) return alone(request);
  Scratch scratch;
  const ShardsInRankOrder shards = shards_in_rank_order(request, scratch);
  const int peers = request.size - 1;
  return make_plan(2 * static_cast<std::size_t>(peers), scratch, [shards, peers](std::size_t index, Round& round) {
    const int distance = static_cast<int>(index) % peers + 1;
    if (static_cast<int>(index) >= peers) return shards.pull(distance, round);
    shards.push(distance, round);
    if (distance == peers) shards.fold(round);
  });
}

}  // namespace

extern constinit const Algorithm ps_sharded = {
    .collective = Collective::allreduce,
    .name = "ps_sharded",
    .summary = "every rank the parameter server of one shard, one worker per round; in rank order",
    .order = FoldOrder::rank_order,
    .build = build_ps_sharded,
    .cost = {.text = "2(p-1)α + 2fnβ + fnγ",
             .seconds = [](const CostTerms& t) { return (t.p - 1) * (2 * t.message(t.n / t.p) + t.add(t.n / t.p)); }},
};

}  // namespace col::plan::allreduce

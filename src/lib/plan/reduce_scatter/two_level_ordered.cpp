// Reduce-scatter over several nodes in rank order, short blocks: inputs change hands through the leaders of the nodes,
// and every rank adds up its own block.
//
// All-to-all by two_level_leaders, and a fold. Nodes may have any ranks. Serves reduce_scatterv too.
//
//   2 nodes of 2 ranks, dealt in turn, "source>block" of the inputs that are sent:
//     round     rank 0                      rank 1                      rank 2                      rank 3
//       0                                                               2>1,2>3 -> 0                3>0,3>2 -> 1
//       1       0>1,2>1,0>3,2>3 -> 1        1>0,3>0,1>2,3>2 -> 0
//       2       1>2,3>2 -> 2; 0>2 -> 2      0>3,2>3 -> 3; 1>3 -> 3      2>0 -> 0                    3>1 -> 1
//       3       adds                        adds                        adds                        adds
//
// Steps: 3. Bytes on the wire: the inputs of the other nodes once, in N-1 messages of a node for N nodes. Wins: short
// blocks, where messages between nodes cost most. Limits: several nodes. Source: as allreduce. Tested by:
// tests/unit/plan/algorithms_test.cpp, with every other builder.
#include <limits>
#include <vector>

#include "plan/two_level/ordered.hpp"

namespace col::plan::reduce_scatter {
namespace {

Plan build_ordered(const PlanRequest& request) {
  const auto size = static_cast<std::size_t>(request.size);
  const Blocks blocks = Blocks::of_input(request);
  const Leaders leaders(request);
  const std::size_t own = blocks.count(static_cast<std::size_t>(request.rank));
  Composition plan;
  const Slice all = plan.take(raw_buffer(request), size * own);

  PlanRequest exchange = request;
  exchange.collective = Collective::alltoallv;
  exchange.in_place = false;
  exchange.count = 0;
  exchange.parameters = {.segment = std::numeric_limits<std::size_t>::max()};  // leaders carry all blocks
  std::vector<std::size_t> counts(size), starts(size);
  for (std::size_t i = 0; i < size; ++i) {
    counts[i] = blocks.count(i);
    starts[i] = blocks.offset(i);
  }
  std::vector<std::size_t> known;  // of the ranks of this node: what they send, and what they get
  for (const int rank : leaders.nodes().ranks(leaders.node())) {
    known.insert(known.end(), counts.begin(), counts.end());
    known.insert(known.end(), size, counts[static_cast<std::size_t>(rank)]);
  }
  exchange.neighbour_counts = plan.keep(std::move(known));
  exchange.in_counts = plan.keep(std::move(counts));
  exchange.in_displacements = plan.keep(std::move(starts));
  exchange.out_counts = plan.keep(std::vector<std::size_t>(size, own));
  std::vector<std::size_t> places(size);
  for (std::size_t i = 0; i < size; ++i) places[i] = i * own;
  exchange.out_displacements = plan.keep(std::move(places));
  std::size_t end = 0;
  for (std::size_t i = 0; i < size; ++i) end = std::max(end, blocks.offset(i) + blocks.count(i));
  plan.add(
      "two_level_leaders", exchange,
      {.ranks = {}, .input = {Buffer::input, 0, end}, .output = all, .is_wide = raw_buffer(request) == Buffer::wide});

  const Slice sum = plan.take(Buffer::wide, own);
  plan.add_round([=](Round& round) {
    const auto of = [&](int rank) { return all.part(static_cast<std::size_t>(rank) * own, own); };
    left_fold(request.size, of, sum, {Buffer::output, 0, own}, request.widens, round);
  });
  return plan.done();
}

}  // namespace

extern constinit const Algorithm two_level_ordered = {
    .collective = Collective::reduce_scatter,
    .name = "two_level_ordered",
    .summary = "inputs go through the leaders of nodes, every rank adds in rank order; short blocks, several nodes",
    .refuse = [](const PlanRequest& request) { return refuse_one_node(request, "direct"); },
    .build = build_ordered,
};

}  // namespace col::plan::reduce_scatter

// Scatter over several nodes, short blocks: the root to the leaders of the nodes, these to the ranks of their nodes.
//
// The root leads its own node, whose ranks hear from it. Serves scatterv too: there leaders carry the short blocks
// alone, and the long ones come straight from the root (two_level/carried.hpp).
//
//   2 nodes of 2 ranks, root 0, blocks that are sent:
//     round     rank 0             rank 1     rank 2     rank 3
//       0       (copies 2,3)
//       1       2,3 -> 2, 1 -> 1
//       2                                     3 -> 3
//
// Steps: 2. Bytes on the wire: the blocks of the other nodes once, in one message to each node. Wins: short blocks;
// long ones do as well by linear, which sends the same bytes between nodes. Limits: several nodes. In scatterv, the
// ranks of a node first tell their leader their counts (two_level/neighbours.cpp). Source: T. Kielmann, R. Hofman, H.
// Bal, A. Plaat, R. Bhoedjang: MagPIe: MPI's collective communication operations for clustered wide area systems, PPoPP
// 1999. Tested by: tests/unit/plan/algorithms_test.cpp, with every other builder; tests/unit/plan/two_level_test.cpp.
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "plan/two_level/carried.hpp"
#include "plan/two_level/leaders.hpp"

namespace col::plan::scatter {
namespace {

Plan build_root(const PlanRequest& request, const Leaders& leaders, const Carried& carried) {
  struct Box {
    int leader;
    Slice region;
    Parcel blocks;
  };
  const Blocks blocks = Blocks::of_input(request);
  Scratch scratch;
  std::vector<Box> boxes;
  for (int node = 0; node < leaders.nodes().count(); ++node) {
    if (node == leaders.node()) continue;
    Parcel parcel;
    for (const int rank : leaders.nodes().ranks(node)) {
      const Slice block = blocks.slice(Buffer::input, rank);
      if (carried.is(block.count)) parcel.add(block);
    }
    const auto in_one = parcel.in_one();
    const Slice region = in_one ? *in_one : scratch.take(Buffer::scratch, parcel.total());
    boxes.push_back({leaders.of_node(node), region, std::move(parcel)});
  }
  const auto shared = std::make_shared<const std::vector<Box>>(std::move(boxes));
  return make_plan(2, scratch, [request, leaders, carried, blocks, shared](std::size_t index, Round& round) {
    if (index == 0) {
      for (const Box& box : *shared) {
        if (!box.blocks.in_one()) box.blocks.pack(box.region, round);
      }
      return;
    }
    for (const Box& box : *shared) round.send(box.leader, box.region);
    for (int by = 1; by < request.size; ++by) {
      const int rank = shifted(request.root, by, request.size);
      const Slice block = blocks.slice(Buffer::input, rank);
      if (leaders.nodes().node_of(rank) == leaders.node() || !carried.is(block.count)) round.send(rank, block);
    }
    if (!request.in_place) round.copy({Buffer::output, 0, request.count}, blocks.slice(Buffer::input, request.root));
  });
}

Plan build_leader(const PlanRequest& request, const Leaders& leaders, const Carried& carried) {
  const std::vector<int> ranks = leaders.nodes().ranks(leaders.node());
  const Packed box(ranks.size(), [&](std::size_t i) {
    return carried.of(request.neighbour_counts.empty() ? request.count : request.neighbour_counts[i]);
  });
  Scratch scratch;
  const Slice region = scratch.take(Buffer::scratch, box.total());
  return make_plan(2, scratch, [request, ranks, box, region, carried](std::size_t index, Round& round) {
    const Slice output{Buffer::output, 0, request.count};
    if (index == 0) return round.recv(request.root, region);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const Slice place = box.range(region, i, i + 1);
      if (ranks[i] != request.rank)
        round.send(ranks[i], place);
      else if (carried.is(request.count))
        round.copy(output, place);
      else
        round.recv(request.root, output);
    }
  });
}

Plan build_leaders(const PlanRequest& request) {
  const Leaders leaders(request);
  const Carried carried(request);
  if (request.rank == request.root) return build_root(request, leaders, carried);
  const bool is_near = leaders.node() == leaders.root_node();
  if (!is_near && leaders.leads()) return build_leader(request, leaders, carried);
  const int from = is_near || !carried.is(request.count) ? request.root : leaders.leader();
  return make_plan(1, {}, [from, count = request.count](std::size_t, Round& round) {
    round.recv(from, {Buffer::output, 0, count});
  });
}

}  // namespace

extern constinit const Algorithm two_level_leaders = {
    .collective = Collective::scatter,
    .name = "two_level_leaders",
    .summary = "one rank of each node receives for all of them; short blocks, several nodes",
    .refuse = [](const PlanRequest& request) { return refuse_one_node(request, "linear"); },
    .build = build_leaders,
};

}  // namespace col::plan::scatter

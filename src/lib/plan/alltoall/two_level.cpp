// All-to-all over several nodes, short blocks: the ranks of a node collect the blocks for each rank of another node.
//
// For each rank of another node, one rank of this node collects the blocks that its node has for it, and sends them in
// one message: the rank of the same local number (mod L, if there are only L). Blocks for ranks of the same node go
// straight. In place, everything is sent from a copy.
//
//   2 nodes of 2 ranks, "source>receiver" of the blocks that are sent:
//     round   rank 0                 rank 1                 rank 2                 rank 3
//       0     0>1, 0>3 -> 1          1>0, 1>2 -> 0          2>3, 2>1 -> 3          3>2, 3>0 -> 2
//       1     0>2 1>2 -> 2           0>3 1>3 -> 3           2>0 3>0 -> 0           2>1 3>1 -> 1
//
// Steps: 2, and 1 in place. Bytes on the wire: each block between nodes once, in N-1 messages of a rank for N equal
// nodes, not p-L. Wins: short blocks, where messages between nodes cost most. Limits: several nodes; equal blocks only:
// of alltoallv, a rank does not know the counts of its neighbours. Source: J. L. Träff, S. Hunold: Decomposing MPI
// collectives for exploiting multi-lane communication, CLUSTER 2020. Tested by: tests/unit/plan/algorithms_test.cpp,
// with every other builder.
#include "plan/blocks.hpp"
#include "plan/nodes.hpp"
#include "plan/support.hpp"

namespace col::plan::alltoall {
namespace {

struct Aggregation {
  PlanRequest request;
  Nodes nodes;
  int node;
  std::vector<int> collects_for = {};  // ranks of other nodes
  Slice source;                        // the input, or a copy of it
  Slice boxes = {};                    // one for each of those: the blocks of this node, by local rank
  Slice inbox = {};                    // one for each other node: its blocks, by local rank

  std::size_t locals() const { return static_cast<std::size_t>(nodes.size(node)); }
  Slice block(Slice of, std::size_t i) const { return of.part(i * request.count, request.count); }
  Slice block_for(int rank) const { return block(source, static_cast<std::size_t>(rank)); }
  Slice output(int rank) const {
    return {Buffer::output, static_cast<std::size_t>(rank) * request.count, request.count};
  }
  Slice box(std::size_t i) const { return boxes.part(i * locals() * request.count, locals() * request.count); }
  // The rank of `of` that collects the blocks for `rank`.
  int collector(int of, int rank) const { return nodes.rank(of, nodes.local_of(rank) % nodes.size(of)); }

  void operator()(std::size_t index, Round& round) const {
    const std::size_t copies = request.in_place ? 1 : 0;
    if (index < copies) return round.copy(source, {Buffer::input, 0, source.count});
    index == copies ? collect(round) : exchange(round);
  }

  void collect(Round& round) const {
    for (const int to : nodes.ranks(node)) {
      if (to == request.rank) continue;
      for (int rank = 0; rank < request.size; ++rank) {
        if (nodes.node_of(rank) != node && collector(node, rank) == to) round.send(to, block_for(rank));
      }
      round.send(to, block_for(to));
    }
    for (std::size_t i = 0; i < locals(); ++i) {
      const int from = nodes.ranks(node)[i];
      const bool is_self = from == request.rank;
      for (std::size_t b = 0; b < collects_for.size(); ++b) {
        if (is_self)
          round.copy(block(box(b), i), block_for(collects_for[b]));
        else
          round.recv(from, block(box(b), i));
      }
      if (is_self)
        round.copy(output(from), block_for(from));
      else
        round.recv(from, output(from));
    }
  }

  void exchange(Round& round) const {
    for (std::size_t b = 0; b < collects_for.size(); ++b) round.send(collects_for[b], box(b));
    std::size_t first = 0;  // block of the node in the inbox
    for (int other = 0; other < nodes.count(); ++other) {
      if (other == node) continue;
      const auto size = static_cast<std::size_t>(nodes.size(other));
      round.recv(collector(other, request.rank), inbox.part(first * request.count, size * request.count));
      for (std::size_t i = 0; i < size; ++i) round.copy(output(nodes.ranks(other)[i]), block(inbox, first + i));
      first += size;
    }
  }
};

Plan build_aggregation(const PlanRequest& request) {
  const Nodes nodes(request);
  const auto size = static_cast<std::size_t>(request.size);
  const int node = nodes.node_of(request.rank);
  Scratch scratch;
  Aggregation plan{.request = request,
                   .nodes = nodes,
                   .node = node,
                   .source = request.in_place ? scratch.take(Buffer::scratch, size * request.count)
                                              : Slice{Buffer::input, 0, size * request.count}};
  for (int rank = 0; rank < request.size; ++rank) {
    if (nodes.node_of(rank) != node && plan.collector(node, rank) == request.rank) plan.collects_for.push_back(rank);
  }
  plan.boxes = scratch.take(Buffer::scratch, plan.collects_for.size() * plan.locals() * request.count);
  plan.inbox = scratch.take(Buffer::scratch, (size - plan.locals()) * request.count);
  return make_plan(request.in_place ? 3 : 2, scratch, plan);
}

}  // namespace

extern constinit const Algorithm two_level = {
    .collective = Collective::alltoall,
    .name = "two_level",
    .summary = "ranks of a node send in one message what all of them have for a rank; short blocks, several nodes",
    .refuse = [](const PlanRequest& request) { return refuse_one_node(request, "pairwise"); },
    .build = build_aggregation,
};

}  // namespace col::plan::alltoall

// Scan and exscan over several nodes: inside each node, then among the last ranks of the nodes, whose sums every node
// adds.
//
// A composition (two_level/leaders.hpp): scan (or exscan) by doubling inside the nodes, exscan by doubling of the
// nodes' sums, broadcast by mst inside the nodes of what lower nodes have.
//
//   2 nodes of 2 ranks, contributions of a scan that a rank has:
//     part          rank 0     rank 1     rank 2       rank 3
//     in the node   0          0+1        2            2+3          0 -> 1, 2 -> 3
//     last ranks                                       of 0+1       1 -> 3
//     in the node                         of 0+1                    3 -> 2
//     result        0          0+1        0+1+2        0+1+2+3
//
// Steps: 2 log2 L + log2 N + 3 for N nodes of L ranks. Bytes on the wire, per node: n log2 N each way. Wins: short
// vectors, where messages between nodes cost most. Limits: several nodes, each of which has neighbouring ranks. Source:
// P. Sanders, J. L. Träff: Parallel prefix (scan) algorithms for MPI, EuroPVM/MPI 2006, for clusters of shared-memory
// nodes. Tested by: tests/unit/plan/algorithms_test.cpp, with every other builder.
#include "plan/two_level/leaders.hpp"

namespace col::plan::scan {
namespace {

Plan build_scan(const PlanRequest& request) {
  const bool is_exclusive = row_of(request.collective).folds == Folds::below_rank;
  const Leaders node(request);
  const std::size_t count = request.count;
  const Slice input{Buffer::input, 0, count}, output{Buffer::output, 0, count};
  const std::vector<int>& locals = node.nodes().ranks(node.node());
  const bool is_first = request.rank == locals.front(), is_last = request.rank == locals.back();
  const bool is_lowest = node.node() == 0;
  Composition plan;
  // Sums of the ranks of this node up to this one (below it, if exclusive); of all of them; of all lower nodes.
  const Slice below = plan.take(Buffer::wide, count);
  const Slice total = is_exclusive && is_last ? plan.take(Buffer::wide, count) : below;
  const Slice before = plan.take(Buffer::wide, is_lowest && !is_last ? 0 : count);

  plan.add("doubling", node.in_node(request.collective, count), node.place_in_node(input, below, true));
  if (is_last) {
    const bool is_needed = node.node() + 1 < node.nodes().count();  // by higher nodes
    if (is_exclusive && is_needed) {
      plan.add_round([=](Round& round) {
        if (is_first)
          round.copy(total, input);
        else
          round.reduce(total, below, input);
      });
    }
    std::vector<int> last_ranks;
    for (int n = 0; n < node.nodes().count(); ++n) last_ranks.push_back(node.nodes().ranks(n).back());
    plan.add("doubling", node.between_nodes(Collective::exscan, count), Place{last_ranks, total, before, true});
  }
  if (!is_lowest) {
    PlanRequest release = node.in_node(Collective::broadcast, count);
    release.root = node.local_size() - 1;
    plan.add("mst", release, node.place_in_node({}, before));
  }
  plan.add_round([=](Round& round) {
    const bool has_below = !is_exclusive || !is_first;
    if (is_lowest) {
      if (has_below) round.convert(output, below);
      return;
    }
    if (has_below) round.reduce(before, before, below);
    round.convert(output, before);
  });
  return plan.done();
}

}  // namespace

extern constinit const Algorithm two_level_leaders = {
    .collective = Collective::scan,
    .name = "two_level_leaders",
    .summary = "nodes add what lower nodes have, which one rank of each finds out; short vectors, several nodes",
    .order = FoldOrder::contiguous,
    .refuse = [](const PlanRequest& request) { return refuse_dealt_nodes(request, "doubling", "doubling"); },
    .build = build_scan,
};

}  // namespace col::plan::scan

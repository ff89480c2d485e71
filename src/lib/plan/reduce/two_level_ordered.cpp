// Reduce over several nodes in rank order, short vectors: the inputs go to the root through the leaders of the nodes,
// and the root adds them up.
//
// Gather by two_level_leaders, and a fold. Nodes may have any ranks.
//
//   2 nodes of 2 ranks, dealt in turn, root 0, inputs that are sent:
//     round     rank 0     rank 1       rank 2     rank 3
//       0                               2 -> 0     3 -> 1
//       1                  1,3 -> 0
//       2       adds all
//
// Steps: 2. Bytes on the wire: the inputs of the other nodes once, in one message of each node. Wins: a few elements,
// where messages between nodes cost most. Limits: several nodes; the root adds p inputs. Source: T. Kielmann, R.
// Hofman, H. Bal, A. Plaat, R. Bhoedjang: MagPIe: MPI's collective communication operations for clustered wide area
// systems, PPoPP 1999, of the operators that are not associative. Tested by: tests/unit/plan/algorithms_test.cpp, with
// every other builder.
#include "plan/two_level/ordered.hpp"

namespace col::plan::reduce {
namespace {

Plan build_ordered(const PlanRequest& request) {
  const std::size_t count = request.count;
  const bool is_root = request.rank == request.root;
  Composition plan;
  const Slice all = plan.take(raw_buffer(request), is_root ? static_cast<std::size_t>(request.size) * count : 0);
  PlanRequest gather = request;
  gather.collective = Collective::gather;
  gather.in_place = false;
  plan.add(
      "two_level_leaders", gather,
      {.ranks = {}, .input = {Buffer::input, 0, count}, .output = all, .is_wide = raw_buffer(request) == Buffer::wide});
  if (is_root) {
    const Slice sum = plan.take(Buffer::wide, count);
    plan.add_round([=](Round& round) {
      const auto of = [&](int rank) { return all.part(static_cast<std::size_t>(rank) * count, count); };
      left_fold(request.size, of, sum, {Buffer::output, 0, count}, request.widens, round);
    });
  }
  return plan.done();
}

}  // namespace

extern constinit const Algorithm two_level_ordered = {
    .collective = Collective::reduce,
    .name = "two_level_ordered",
    .summary =
        "inputs go through the leaders of nodes to the root, which adds in rank order; a few elements, several nodes",
    .refuse = [](const PlanRequest& request) { return refuse_one_node(request, "linear"); },
    .build = build_ordered,
};

}  // namespace col::plan::reduce

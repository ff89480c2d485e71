// Gather over several nodes, short blocks: every node gathers to its leader, and the leaders send them to the root.
//
// The root leads its own node, whose ranks send to it. It is the scatter of two levels backwards. Serves gatherv too:
// there leaders carry the short blocks alone, and the long ones go straight to the root (two_level/carried.hpp).
//
//   2 nodes of 2 ranks, root 0, blocks that are sent:
//     round     rank 0     rank 1     rank 2       rank 3
//       0                  1 -> 0                  3 -> 2
//       1                             2,3 -> 0
//
// Steps: 2. Bytes on the wire: the blocks of the other nodes once, in one message of each node. Wins: short blocks;
// long ones do as well by linear, which sends the same bytes between nodes. Limits: several nodes. In gatherv, the
// ranks of a node first tell their leader their counts (two_level/neighbours.cpp). Source: T. Kielmann, R. Hofman, H.
// Bal, A. Plaat, R. Bhoedjang: MagPIe: MPI's collective communication operations for clustered wide area systems, PPoPP
// 1999. Tested by: tests/unit/plan/algorithms_test.cpp, with every other builder; tests/unit/plan/two_level_test.cpp.
#include "plan/backwards.hpp"
#include "plan/nodes.hpp"

namespace col::plan::gather {

extern constinit const Algorithm two_level_leaders = {
    .collective = Collective::gather,
    .name = "two_level_leaders",
    .summary = "one rank of each node sends for all of them; short blocks, several nodes",
    .refuse = [](const PlanRequest& request) { return refuse_one_node(request, "linear"); },
    .build =
        [](const PlanRequest& request) {
          return scatter_backwards("two_level_leaders", request, request.rank == request.root);
        },
};

}  // namespace col::plan::gather

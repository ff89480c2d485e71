// Minimum-spanning-tree broadcast: halve the range of ranks, send to one rank of the other half, go on in both halves.
//
// The range is cut in the middle; the root sends to the rank at the far end of the half it is not in, which is the root
// of that half from then on.
//
//   4 ranks, root 0, what is sent:
//     round   rank 0   rank 1   rank 2   rank 3
//       0     -> 3
//       1     -> 1                       -> 2
//
// Steps: L = ceil(log2 p). Bytes on the wire: n per step, n(p-1) in all. Cost: L(a + nb).
// Wins: short vectors. Limits: none; any p, any root.
// Source: E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn: Collective communication: theory, practice, and
// experience, Concurrency and Computation 19(13), 2007. Tested by: tests/unit/plan/algorithms_test.cpp.
#include "plan/cost_terms.hpp"
#include "plan/support.hpp"
#include "plan/trees.hpp"

namespace col::plan::broadcast {
namespace {

Plan build_mst(const PlanRequest& request) {
  return make_plan(static_cast<std::size_t>(ceil_log2(request.size)), {}, [request](std::size_t index, Round& round) {
    const auto range = halving(request.rank, request.root, request.size, static_cast<int>(index));
    if (!range) return;
    const Slice data{Buffer::output, 0, request.count};
    if (request.rank == range->root) round.send(range->other, data);
    if (request.rank == range->other) round.recv(range->root, data);
  });
}

}  // namespace

extern constinit const Algorithm mst = {
    .collective = Collective::broadcast,
    .name = "mst",
    .summary = "halves the range of ranks; fewest steps, for short vectors",
    .build = build_mst,
    .cost = {.text = "L(α + nβ)", .seconds = [](const CostTerms& t) { return t.logarithm() * t.message(t.n); }},
};

}  // namespace col::plan::broadcast

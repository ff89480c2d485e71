// Linear broadcast: the root sends to every other rank itself.
//
//   4 ranks, root 0, what is sent:
//     round   rank 0           rank 1   rank 2   rank 3
//       0     -> 1, 2, 3
//
// Steps: 1, of p-1 messages. Bytes on the wire: n(p-1), all out of the root's port. Cost: (p-1)(a + nb).
// Wins: two or three ranks; a root whose messages do not queue in one port. Limits: none; any p, any root. It is also
// what the others are measured against.
// Source: E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn: Collective communication: theory, practice, and
// experience, Concurrency and Computation 19(13), 2007. Tested by: tests/unit/plan/algorithms_test.cpp.
#include "plan/cost_terms.hpp"
#include "plan/support.hpp"

namespace col::plan::broadcast {
namespace {

Plan build_linear(const PlanRequest& request) {
  const std::size_t rounds = request.size > 1 ? 1 : 0;
  return make_plan(rounds, {}, [request](std::size_t, Round& round) {
    const Slice data{Buffer::output, 0, request.count};
    if (request.rank != request.root) return round.recv(request.root, data);
    // From the root's neighbour on, so that concurrent broadcasts of different roots do not meet at one rank.
    for (int by = 1; by < request.size; ++by) round.send(shifted(request.root, by, request.size), data);
  });
}

}  // namespace

extern constinit const Algorithm linear = {
    .collective = Collective::broadcast,
    .name = "linear",
    .summary = "the root sends to every rank; for very few ranks",
    .build = build_linear,
    .cost = {.text = "(p-1)(α + nβ)", .seconds = [](const CostTerms& t) { return (t.p - 1) * t.message(t.n); }},
};

}  // namespace col::plan::broadcast

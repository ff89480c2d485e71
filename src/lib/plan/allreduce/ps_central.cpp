// Central parameter server: rank 0 collects from all, one after the other, and serves all, one after the other.
//
// What a trainer with one server process does, as a collective: the baseline that the others are measured against.
//
//   4 ranks:
//     round     0        1        2        3        4        5
//     push   1 -> 0   2 -> 0   3 -> 0
//     pull                              0 -> 1   0 -> 2   0 -> 3
//     rank 0  0+1     (0+1)+2  ((0+1)+2)+3, complete
//
// Steps: 2(p-1). Bytes on the wire: 2n(p-1) through rank 0, 2n on any other rank. Cost: 2(p-1)(a + nb) + (p-1)ng.
// Wins: never on time; it is in rank order with scratch of no more than n, on one rank only. Limits: any p; everything
// goes through one port.
// Source: M. Li et al.: Scaling distributed machine learning with the parameter server, OSDI 2014, with one server.
// Tested by: tests/unit/plan/algorithms_test.cpp, with every other builder.
#include "plan/cost_terms.hpp"
#include "plan/support.hpp"

namespace col::plan::allreduce {
namespace {

constexpr int kServer = 0;

struct PsCentral {
  PlanRequest request;
  Slice input, output;
  Slice pushed = {};   // server: what one worker sent
  Slice partial = {};  // server: the sum so far

  void operator()(std::size_t index, Round& round) const {
    const auto workers = static_cast<std::size_t>(request.size - 1);
    const bool pushing = index < workers;
    const int worker = static_cast<int>(pushing ? index : index - workers) + 1;
    if (request.rank == kServer) {
      if (!pushing) return round.send(worker, output);
      round.recv(worker, pushed);
      round.reduce(partial, worker == 1 ? input : partial, pushed);
      if (index + 1 == workers) round.convert(output, partial);
    } else if (request.rank == worker) {
      if (pushing)
        round.send(kServer, input);
      else
        round.recv(kServer, output);
    }
  }
};

Plan build_ps_central(const PlanRequest& request) {
  if (request.size == 1) return alone(request);
  PsCentral plan{
      .request = request, .input = {Buffer::input, 0, request.count}, .output = {Buffer::output, 0, request.count}};
  Scratch scratch;
  if (request.rank == kServer) {
    plan.pushed = scratch.take(raw_buffer(request), request.count);
    plan.partial = request.widens ? scratch.take(Buffer::wide, request.count) : plan.output;
  }
  return make_plan(2 * static_cast<std::size_t>(request.size - 1), scratch, plan);
}

}  // namespace

extern constinit const Algorithm ps_central = {
    .collective = Collective::allreduce,
    .name = "ps_central",
    .summary = "one parameter server, workers push and pull in turn; a baseline, in rank order",
    .order = FoldOrder::rank_order,
    .build = build_ps_central,
    .cost = {.text = "2(p-1)(α + nβ) + (p-1)nγ",
             .seconds = [](const CostTerms& t) { return (t.p - 1) * (2 * t.message(t.n) + t.add(t.n)); }},
};

}  // namespace col::plan::allreduce

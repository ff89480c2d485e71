// Linear scan and exscan: the sum of all lower ranks passes from each rank to the next.
//
// A rank passes its sum on before it finishes its own result: what travels must still be a partial result. The exscan's
// result is what arrives, the scan's what is passed on.
//
//   4 ranks, what is sent:
//     time    rank 0       rank 1       rank 2       rank 3
//       0     0 -> 1
//       1                  01 -> 2
//       2                               012 -> 3
//
// Steps: p-1. Bytes on the wire: n per step, n(p-1) in all. Cost: (p-1)(a + nb + ng).
// Wins: two or three ranks; results that must be folded in rank order. Limits: none; any p, any operator.
// Source: the definition of MPI_Scan, MPI: A Message-Passing Interface Standard, version 4.0, section 6.11.
// Tested by: tests/unit/plan/algorithms_test.cpp.
#include "plan/cost_terms.hpp"
#include "plan/support.hpp"

namespace col::plan {
namespace {

struct LinearScan {
  PlanRequest request;
  bool is_exclusive = false;
  Slice landing = {};  // the sum of all lower ranks
  Slice sum = {};      // with this rank's input

  // Rounds: take what comes from below, pass the sum on, finish the result. In place, the last two must not be one: the
  // result overwrites what is being sent.
  void operator()(std::size_t index, Round& round) const {
    const Slice input{Buffer::input, 0, request.count};
    const bool is_first = request.rank == 0;
    const bool is_last = request.rank == request.size - 1;
    if (index == 0 && !is_first) {
      round.recv(request.rank - 1, landing);
      if (!is_exclusive || !is_last) round.reduce(sum, landing, input);
    } else if (index == 1 && !is_last) {
      round.send(request.rank + 1, is_first ? input : sum);
    } else if (index == 2 && !(is_exclusive && is_first)) {
      const Slice inclusive = is_first ? input : sum;
      round.convert({Buffer::output, 0, request.count}, is_exclusive ? landing : inclusive);
    }
  }
};

Plan build_linear(const PlanRequest& request, bool is_exclusive) {
  LinearScan scan{.request = request, .is_exclusive = is_exclusive};
  Scratch scratch;
  if (request.rank > 0) {
    const bool arrives_raw = request.rank == 1 && raw_buffer(request) == Buffer::scratch;
    scan.landing = scratch.take(arrives_raw ? Buffer::scratch : Buffer::wide, request.count);
    // The exscan's output is for what arrived; the scan has no more use for that once it is added.
    if (is_exclusive || arrives_raw)
      scan.sum = scratch.take(Buffer::wide, request.count);
    else
      scan.sum = scan.landing;
    if (!is_exclusive && !request.widens) scan.sum = {Buffer::output, 0, request.count};
  }
  return make_plan(3, scratch, scan);
}

// The last rank adds nothing: what arrives is its result.
double exscan_linear(const CostTerms& t) {
  return (t.p - 1) * t.message(t.n) + (t.p - 2) * t.add(t.n);
}

}  // namespace

namespace scan {
extern constinit const Algorithm linear = {
    .collective = Collective::scan,
    .name = "linear",
    .summary = "sums pass from rank to rank in rank order; for very few ranks",
    .order = FoldOrder::rank_order,
    .build = [](const PlanRequest& request) { return build_linear(request, false); },
    .cost = {.text = "(p-1)(α + nβ + nγ)",
             .seconds = [](const CostTerms& t) { return (t.p - 1) * (t.message(t.n) + t.add(t.n)); }},
};
}  // namespace scan

namespace exscan {
extern constinit const Algorithm linear = {
    .collective = Collective::exscan,
    .name = "linear",
    .summary = "sums pass from rank to rank in rank order; for very few ranks",
    .order = FoldOrder::rank_order,
    .build = [](const PlanRequest& request) { return build_linear(request, true); },
    .cost = {.text = "(p-1)(α + nβ) + (p-2)nγ", .seconds = exscan_linear},
};
}  // namespace exscan

}  // namespace col::plan

// Scan and exscan by recursive doubling: in round k every rank sends its sum to the rank 2^k above it.
//
// After round k a rank has the sum of the 2^(k+1) ranks that end with itself, or of all from rank 0 on. What arrives is
// the sum of the range just below, and so the left operand. The exscan adds it to a second sum as well, which leaves
// this rank's own input out.
//
//   4 ranks, what is sent:
//     round   rank 0       rank 1       rank 2       rank 3
//       0     0 -> 1       1 -> 2       2 -> 3
//       1     0 -> 2       01 -> 3                              rank 2 has 0+12, rank 3 has 01+23
//
// Steps: L = ceil(log2 p). Bytes on the wire, per rank: nL at most. Cost: L(a + nb + ng); exscan: up to 2Lng.
// Wins: from four ranks on. Limits: none; any p, any associative operator.
// Source: W. D. Hillis, G. L. Steele: Data parallel algorithms, Communications of the ACM 29(12), 1986.
// Tested by: tests/unit/plan/algorithms_test.cpp.
#include "plan/cost_terms.hpp"
#include "plan/support.hpp"
#include "plan/trees.hpp"

namespace col::plan {
namespace {

struct DoublingScan {
  PlanRequest request;
  bool is_exclusive = false;
  Slice first = {};       // what arrives in round 0: another rank's bare input
  Slice from_zero = {};   // what arrives from rank 0, in whatever round: its bare input
  Slice partial[2] = {};  // the sum that travels, by parity of the round: one is sent while the next is made
  Slice total = {};  // the sum of all lower ranks (exscan), from round 1 on; of these and this one (scan), at the end

  Slice input() const { return {Buffer::input, 0, request.count}; }
  bool receives(int k) const { return request.rank >= 1 << k; }
  bool sends(int k) const { return request.rank + (1 << k) < request.size; }
  // The last round in which this rank receives; -1 for rank 0.
  int last_receipt() const { return request.rank == 0 ? -1 : floor_log2(request.rank); }

  // The sum that ends with this rank, before round k. Once it is complete, it stays in its place.
  Slice sum_before(int k) const {
    if (k > last_receipt()) k = last_receipt() + 1;
    if (k == 0) return input();
    return !is_exclusive && k == last_receipt() + 1 ? total : partial[k % 2];
  }

  Slice landing(int k) const {
    if (k == 0) return first;
    const bool is_bare = request.rank == 1 << k && raw_buffer(request) == Buffer::scratch;
    return is_bare ? from_zero : partial[(k + 1) % 2];
  }

  void add_to_total(int k, const Slice& arrived, Round& round) const {
    if (k > 0) round.reduce(total, arrived, k == 1 ? first : total);
  }

  void operator()(std::size_t index, Round& round) const {
    const int k = static_cast<int>(index);
    if (k == ceil_log2(request.size)) {
      if (!is_exclusive) return round.convert({Buffer::output, 0, request.count}, sum_before(k));
      if (request.rank > 0) round.convert({Buffer::output, 0, request.count}, last_receipt() == 0 ? first : total);
      return;
    }
    const int distance = 1 << k;
    if (sends(k)) round.send(request.rank + distance, sum_before(k));
    if (!receives(k)) return;
    const Slice arrived = landing(k);
    round.recv(request.rank - distance, arrived);
    if (is_exclusive) add_to_total(k, arrived, round);
    if (!is_exclusive || sends(k + 1)) round.reduce(sum_before(k + 1), arrived, sum_before(k));
  }
};

Plan build_doubling(const PlanRequest& request, bool is_exclusive) {
  DoublingScan scan{.request = request, .is_exclusive = is_exclusive};
  const auto rounds = static_cast<std::size_t>(ceil_log2(request.size)) + 1;
  if (request.rank == 0) return make_plan(rounds, {}, scan);
  Scratch scratch;
  const Slice output{Buffer::output, 0, request.count};
  for (Slice& partial : scan.partial) partial = scratch.take(Buffer::wide, request.count);
  const int receipts = scan.last_receipt() + 1;
  // Bare inputs that need no other type may arrive where the sum is going to be, unless the exscan keeps them.
  const bool keeps_first = is_exclusive || raw_buffer(request) == Buffer::scratch;
  scan.first = keeps_first ? scratch.take(raw_buffer(request), request.count) : scan.partial[1];
  const bool is_power = lowest_bit(request.rank) == request.rank;
  if (is_power && raw_buffer(request) == Buffer::scratch)
    scan.from_zero = request.rank == 1 ? scan.first : scratch.take(Buffer::scratch, request.count);
  // In place, rank 1's input may still be on its way up when its result is ready.
  const bool input_is_free = !request.in_place || receipts > 1;
  if (!request.widens && input_is_free)
    scan.total = output;
  else
    scan.total = is_exclusive ? scratch.take(Buffer::wide, request.count) : scan.partial[receipts % 2];
  return make_plan(rounds, scratch, scan);
}

// In round k, if 3 * 2^k < p, some rank has two sums to add up: its own to pass on, and that of the lower ranks. In
// round 0 it has only the first one. For other numbers than powers of two, not all ranks that wait for each other do.
double exscan_doubling(const CostTerms& t) {
  int additions = t.p > 3 ? 1 : 0;
  for (int distance = 2; distance < t.p; distance *= 2) additions += 3 * distance < t.p ? 2 : 1;
  return t.logarithm() * t.message(t.n) + additions * t.add(t.n);
}

}  // namespace

namespace scan {
extern constinit const Algorithm doubling = {
    .collective = Collective::scan,
    .name = "doubling",
    .summary = "sums travel doubling distances; fewest steps",
    .order = FoldOrder::contiguous,
    .build = [](const PlanRequest& request) { return build_doubling(request, false); },
    .cost = {.text = "L(α + nβ + nγ)",
             .seconds = [](const CostTerms& t) { return t.logarithm() * (t.message(t.n) + t.add(t.n)); }},
};
}  // namespace scan

namespace exscan {
extern constinit const Algorithm doubling = {
    .collective = Collective::exscan,
    .name = "doubling",
    .summary = "sums travel doubling distances; fewest steps",
    .order = FoldOrder::contiguous,
    .build = [](const PlanRequest& request) { return build_doubling(request, true); },
    .cost = {.text = "L(α + nβ) + 2(L-1)nγ", .seconds = exscan_doubling, .least = 0.95, .most = 1.01},
};
}  // namespace exscan

}  // namespace col::plan

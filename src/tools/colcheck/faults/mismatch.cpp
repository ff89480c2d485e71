// One rank makes another call than the others, and every rank, this one included, gets `mismatch` that names it.
// Case::variant is the value of COL_CHECK: lazy (0) or strict (1).
#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/judge.hpp"
#include "colcheck/properties/list.hpp"
#include "common/gpu.hpp"

namespace col::colcheck {
namespace {

enum Strictness : std::uint64_t { kLazy, kStrict };
// From the moment at which the last rank may call. The library waits for 100 ms before it looks, and needs some more to
// find the rank that differs.
constexpr double kSecondOrSo = 1.5;
constexpr Duration kMismatchTimeout = std::chrono::seconds(2);
constexpr int kCalls = 2;

struct Mismatch {
  std::string_view property, summary;
  DType dtype;
  std::span<const Primitive> calls;  // of all ranks but the odd one
  // The odd rank's call, from that of the others. It depends only on the case.
  void (*change)(Case& c);
  bool in_flight = false;  // Drill::in_flight
};

// A number from 0 to `values` - 1.
std::uint64_t drawn(const Case& c, std::uint64_t values) {
  return mix(c.seed, 3) % values;
}

// ---- The odd rank's calls

void change_primitive(Case& c) {
  struct Odd {
    Primitive call, instead;
  };
  constexpr std::array<Odd, 7> kOdd = {{{Primitive::allreduce, Primitive::reduce},
                                        {Primitive::broadcast, Primitive::scatter},
                                        {Primitive::allgather, Primitive::alltoall},
                                        {Primitive::gather, Primitive::allgather},
                                        {Primitive::alltoall, Primitive::reduce_scatter},
                                        {Primitive::exscan, Primitive::scan},
                                        {Primitive::reduce, Primitive::reduce}}};
  const auto* const found = std::ranges::find(kOdd, c.primitive, &Odd::call);
  if (c.primitive == Primitive::gather) c.root = 0;
  if (found == kOdd.end()) {
    c.primitive = Primitive::allreduce;
    c.count = 1;
  } else if (found->instead == c.primitive) {
    c.asynchronous = true;
  } else {
    c.primitive = found->instead;
  }
}

// One more, one less, twice as many (as 1 x 2560 against 2 x 2560), far more than fits any buffer, none.
void change_count(Case& c) {
  const std::size_t counts[] = {c.count + 1, c.count - 1, 2 * c.count, 100'000, 0};
  c.count = counts[drawn(c, 5)];
}

// Of the same size, a larger, a smaller one.
void change_dtype(Case& c) {
  constexpr DType kTypes[] = {DType::float32, DType::float64, DType::int8, DType::float16};
  c.dtype = kTypes[drawn(c, 4)];
}

void change_root(Case& c) {
  c.root = (c.root + 1 + static_cast<int>(drawn(c, static_cast<std::uint64_t>(c.ranks - 1)))) % c.ranks;
}

void change_operator(Case& c) {
  constexpr Operator kOperators[] = {Operator::product, Operator::min, Operator::avg, Operator::bxor, Operator::user};
  c.op = kOperators[drawn(c, 5)];
}

// All ranks wait in the next call, which is the same on all of them.
void change_something(Case& c) {
  if (is_rooted(c.primitive) && drawn(c, 2) == 0)
    c.root = (c.root + 1) % c.ranks;
  else if (c.primitive == Primitive::barrier)
    c.primitive = Primitive::allreduce;
  else
    c.count = c.count + 1;
}

// ---- The table

constexpr Primitive kCallsOfOp[] = {Primitive::allreduce, Primitive::broadcast, Primitive::allgather,
                                    Primitive::gather,    Primitive::alltoall,  Primitive::exscan,
                                    Primitive::reduce,    Primitive::barrier};
constexpr Mismatch kOp{"mismatch_op", "one rank that calls another primitive is named on all ranks", DType::float32,
                       kCallsOfOp, &change_primitive};

constexpr Primitive kCallsOfCount[] = {
    Primitive::allreduce,      Primitive::broadcast, Primitive::reduce,  Primitive::allgather, Primitive::allgatherv,
    Primitive::reduce_scatter, Primitive::gather,    Primitive::scatter, Primitive::alltoall,  Primitive::scan};
constexpr Mismatch kMismatchCount{"mismatch_count", "one rank that calls with another count is named on all ranks",
                                  DType::float32, kCallsOfCount, &change_count};

constexpr Primitive kCallsOfDType[] = {
    Primitive::allreduce,       Primitive::broadcast, Primitive::reduce,   Primitive::allgather,
    Primitive::reduce_scatterv, Primitive::scatter,   Primitive::alltoall, Primitive::scan};
constexpr Mismatch kDType{"mismatch_dtype", "one rank that calls with another dtype is named on all ranks",
                          DType::int32, kCallsOfDType, &change_dtype};

constexpr Primitive kCallsOfRoot[] = {Primitive::broadcast, Primitive::reduce,  Primitive::gather,
                                      Primitive::gatherv,   Primitive::scatter, Primitive::scatterv};
constexpr Mismatch kRoot{"mismatch_root", "one rank that calls with another root is named on all ranks", DType::float32,
                         kCallsOfRoot, &change_root};

constexpr Primitive kCallsOfReduceOp[] = {Primitive::allreduce,       Primitive::reduce, Primitive::reduce_scatter,
                                          Primitive::reduce_scatterv, Primitive::scan,   Primitive::exscan};
constexpr Mismatch kReduceOp{"mismatch_reduce_op", "one rank that reduces by another operator is named on all ranks",
                             DType::int32, kCallsOfReduceOp, &change_operator};

constexpr Primitive kCallsInFlight[] = {Primitive::allreduce, Primitive::broadcast, Primitive::reduce,
                                        Primitive::allgather, Primitive::scatter,   Primitive::barrier};
constexpr Mismatch kDrillInFlight{
    "mismatch_in_flight", "one rank that starts another call is named on all ranks, which wait in the next one",
    DType::float32,       kCallsInFlight,
    &change_something,    true};

// ---- The property

// Each call on each backend, with both values of COL_CHECK; in a quick run with one of the two.
void add_mismatches(const Mismatch& mismatch, const Selection& selection, std::vector<Case>& all) {
  // Of two that differ, neither is the odd one.
  const std::vector<int> sizes = drill_ranks(selection, 3);
  std::uint64_t number = 0;
  for (const std::string& backend : drill_backends(selection)) {
    // What is on GPUs, the backend does not look at itself.
    const bool only_strict = tools::moves_device_memory(backend);
    for (const Primitive call : mismatch.calls) {
      ++number;
      for (const std::uint64_t check : {kLazy, kStrict}) {
        const bool quick = selection.effort == Effort::quick;
        if (sizes.empty() || (only_strict && check == kLazy)) continue;
        if (quick && !only_strict && check != mix(selection.seed, number, 1) % 2) continue;
        Case& c = all.emplace_back();
        c.property = mismatch.property;
        c.backend = backend;
        c.ranks = sizes[(number + check) % sizes.size()];
        c.primitive = call;
        if (call != Primitive::barrier) {
          c.dtype = mismatch.dtype;
          c.count = 24;
        }
        c.seed = mix(selection.seed, number, 2);
        if (is_rooted(call)) c.root = static_cast<int>(mix(c.seed, 1) % static_cast<std::uint64_t>(c.ranks));
        c.variant = check;
      }
    }
  }
}

Finding run_mismatch(const Mismatch& mismatch, const Case& c) {
  const int odd = victim_of(c);
  Drill drill{.c = c, .calls = kCalls, .odd = odd, .oddity = Drill::Oddity::calls_other, .other = c};
  mismatch.change(*drill.other);
  drill.asks_to_call = true;
  drill.in_flight = mismatch.in_flight;
  Job job(spec_of(drill, {.timeout = kMismatchTimeout,
                          .environment = {fmt::format("COL_CHECK={}", c.variant == kStrict ? "strict" : "lazy")}}));
  job.await_point_of_all("call");
  const double called = job.now();
  job.go_on_all();
  const JobEnd end = job.finish();
  const std::string problem = first_of(
      {problem_with_errors(end, {.code = ErrorCode::mismatch, .culprit = odd, .since = called, .within = kSecondOrSo}),
       problem_with_traces(end)});
  if (problem.empty()) return Finding::pass();
  return Finding::fail(
      fmt::format("{} instead of {} on rank {}: {}", describe(*drill.other), describe(c), odd, problem));
}

template <const Mismatch& kMismatch>
constexpr Property property_of() {
  return {kMismatch.property,
          kMismatch.summary,
          Property::Kind::fault,
          [](const Selection& selection, std::vector<Case>& all) { add_mismatches(kMismatch, selection, all); },
          [](Rank&, const Case& c) { return run_mismatch(kMismatch, c); },
          OnGpus::buffers};
}

}  // namespace

const Property kFaultMismatchOp = property_of<kOp>();
const Property kFaultMismatchCount = property_of<kMismatchCount>();
const Property kFaultMismatchDType = property_of<kDType>();
const Property kFaultMismatchRoot = property_of<kRoot>();
const Property kFaultMismatchReduceOp = property_of<kReduceOp>();
const Property kFaultMismatchInFlight = property_of<kDrillInFlight>();

}  // namespace col::colcheck

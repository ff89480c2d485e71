#include "colcheck/faults/mismatch.hpp"

#include <fmt/format.h>

#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/drill.hpp"
#include "colcheck/faults/judge.hpp"

namespace col::colcheck {
namespace {

enum Check : std::uint64_t { kLazy, kStrict };
// From the moment at which the last rank may call. The library waits for 100 ms before it looks, and needs some more to
// find the rank that differs.
constexpr double kSecondOrSo = 1.5;
constexpr Duration kTimeout = std::chrono::seconds(2);
constexpr int kCalls = 2;

int odd_rank(const Case& c) {
  return static_cast<int>(mix(c.seed, 2) % static_cast<std::uint64_t>(c.ranks));
}

}  // namespace

std::vector<Case> calls_of(DType dtype, std::initializer_list<Primitive> primitives) {
  std::vector<Case> calls;
  for (const Primitive primitive : primitives) {
    const bool moves = primitive != Primitive::barrier;
    calls.push_back({.primitive = primitive, .dtype = moves ? dtype : DType::uint8, .count = moves ? 24U : 0U});
  }
  return calls;
}

void add_mismatches(const Mismatch& mismatch, const Selection& selection, std::vector<Case>& cases) {
  // Of two that differ, neither is the odd one.
  const std::vector<int> sizes = drill_ranks(selection, 3);
  std::uint64_t number = 0;
  for (const std::string& backend : selection.backends) {
    for (const Case& call : mismatch.calls) {
      ++number;
      for (const std::uint64_t check : {kLazy, kStrict}) {
        const bool quick = selection.effort == Effort::quick;
        // NCCL itself does not look at what it moves.
        if (sizes.empty() || (backend == "nccl" && check == kLazy)) continue;
        if (quick && backend != "nccl" && check != mix(selection.seed, number, 1) % 2) continue;
        Case c;
        c.property = mismatch.property;
        c.backend = backend;
        c.ranks = sizes[(number + check) % sizes.size()];
        c.primitive = call.primitive;
        c.dtype = call.dtype;
        c.op = call.op;
        c.count = call.count;
        c.seed = mix(selection.seed, number, 2);
        if (is_rooted(c.primitive)) c.root = static_cast<int>(mix(c.seed, 1) % static_cast<std::uint64_t>(c.ranks));
        c.variant = check;
        cases.push_back(c);
      }
    }
  }
}

Finding run_mismatch(const Mismatch& mismatch, const Case& c) {
  const int odd = odd_rank(c);
  Drill drill{.c = c, .calls = kCalls, .odd = odd, .oddity = Drill::Oddity::calls_other, .other = mismatch.other(c)};
  drill.asks_to_call = true;
  drill.in_flight = mismatch.in_flight;
  Job job({.ranks = c.ranks,
           .arguments = {"--fault-rank", encode(drill)},
           .timeout = kTimeout,
           .environment = {fmt::format("COL_CHECK={}", c.variant == kStrict ? "strict" : "lazy")}});
  for (int rank = 0; rank < c.ranks; ++rank) job.await_point(rank, "call");
  const double called = job.now();
  for (int rank = 0; rank < c.ranks; ++rank) job.go_on(rank);
  const JobEnd end = job.finish();
  const std::string problem = first_of(
      {problem_with_errors(end, {.code = ErrorCode::mismatch, .culprit = odd, .since = called, .within = kSecondOrSo}),
       problem_with_traces(end)});
  if (problem.empty()) return Finding::pass();
  return Finding::fail(
      fmt::format("{} instead of {} on rank {}: {}", describe(*drill.other), describe(c), odd, problem));
}

}  // namespace col::colcheck

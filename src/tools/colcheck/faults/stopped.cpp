// SIGSTOP. If a rank is stopped for less than the timeout, the others wait for it, and the data is right. If it is
// stopped for longer, the others name it, and it ends with an error itself once it goes on. It is stopped before a step
// of its plan, for a short time (Case::variant 0) or a long one (1), or between two calls for a long time (2).
#include <csignal>

#include <fmt/format.h>

#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/drill.hpp"
#include "colcheck/faults/judge.hpp"
#include "colcheck/faults/steps.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

enum Way : std::uint64_t { kShort, kLong, kLongBetween, kWays };
constexpr int kCalls = 2;
// Beyond the moment when the others begin to wonder.
constexpr Duration kShortStop = std::chrono::milliseconds(400);
constexpr Duration kPatient = std::chrono::seconds(5), kTimeout = std::chrono::seconds(1);
constexpr double kTimeoutSeconds = 1, kEpsilonSeconds = 1, kAlmost = 0.9;

void cases(const Selection& selection, std::vector<Case>& all) {
  const std::vector<int> sizes = drill_ranks(selection);
  std::vector<std::pair<Primitive, const char*>> calls = {{Primitive::allreduce, "ring"}};
  if (selection.effort == Effort::full)
    calls.insert(calls.end(), {{Primitive::broadcast, "scatter_allgather"},
                               {Primitive::allgather, "bruck"},
                               {Primitive::alltoall, "pairwise"},
                               {Primitive::allreduce, "rabenseifner"}});
  std::uint64_t number = 0;
  for (const std::string& backend : selection.backends) {
    for (const auto& [primitive, algorithm] : calls) {
      for (std::uint64_t way = 0; way < kWays && !sizes.empty(); ++way) {
        Case c;
        c.property = "stopped";
        c.backend = backend;
        c.seed = mix(selection.seed, ++number);
        c.ranks = sizes[number % sizes.size()];
        c.primitive = primitive;
        c.algorithm = algorithm;
        c.dtype = DType::float32;
        c.count = number % 2 == 0 ? 24 : 50'000;
        c.variant = way;
        if (is_rooted(c.primitive)) c.root = static_cast<int>(mix(c.seed, 1) % static_cast<std::uint64_t>(c.ranks));
        all.push_back(c);
      }
    }
  }
}

int victim_of(const Case& c) {
  return static_cast<int>(mix(c.seed, 2) % static_cast<std::uint64_t>(c.ranks));
}

JobSpec spec_of(const Case& c) {
  const int victim = victim_of(c);
  Drill drill{.c = c, .calls = kCalls};
  drill.asks_to_call = c.variant == kLongBetween;
  JobSpec spec{.ranks = c.ranks,
               .arguments = {"--fault-rank", encode(drill)},
               .timeout = c.variant == kShort ? kPatient : kTimeout};
  if (c.variant != kLongBetween) {
    const auto steps = static_cast<std::uint64_t>(count_steps(numbered(c, kCalls), victim));
    spec.fault = fmt::format("stop:rank={},op={},step={}", victim, kCalls, mix(c.seed, 3) % steps);
  }
  return spec;
}

Finding run(Rank& /*rank*/, const Case& c) {
  const int victim = victim_of(c);
  Job job(spec_of(c));
  if (c.variant == kLongBetween) {
    for (int rank = 0; rank < c.ranks; ++rank) job.await_point(rank, "call");
    job.signal(victim, SIGSTOP);
  }
  const bool stopped = job.await_stopped(victim);
  const double since = job.now();
  for (int rank = 0; c.variant == kLongBetween && rank < c.ranks; ++rank) job.go_on(rank);
  if (c.variant == kShort) {
    job.pause(kShortStop);
  } else {
    for (int rank = 0; rank < c.ranks; ++rank) {
      if (rank != victim) job.await_report(rank);
    }
  }
  job.signal(victim, SIGCONT);
  const JobEnd end = job.finish();
  if (!stopped) return Finding::fail("the fault did not strike: " + describe(end, victim));
  if (c.variant == kShort) return Finding::of(first_of({problem_with_success(end), problem_with_traces(end)}));

  const auto& own = end.ranks[static_cast<std::size_t>(victim)].report;
  return Finding::of(
      first_of({problem_with_errors(end, {.code = ErrorCode::timeout,
                                          .culprit = victim,
                                          .exempt = {victim},
                                          .since = since + kTimeoutSeconds,
                                          .within = kEpsilonSeconds,
                                          .not_before = kAlmost * kTimeoutSeconds}),
                problem_with_end(end, victim), own && own->good() ? "the rank that was stopped noticed nothing" : "",
                problem_with_traces(end)}));
}

}  // namespace

const Property kFaultStopped{"stopped",
                             "a rank that stands still is waited for until the timeout, and then named by the others",
                             Property::Kind::fault, &cases, &run};

}  // namespace col::colcheck

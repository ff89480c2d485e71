// A rank that is slow, stands still, or never comes: the others wait for it until the timeout, and then name it.
#include <csignal>

#include <fmt/format.h>

#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/judge.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

constexpr int kDelayCalls = 2;
constexpr Duration kPatient = std::chrono::seconds(5), kTimeout = std::chrono::seconds(1);
constexpr double kTimeoutSeconds = 1, kEpsilonSeconds = 1;
// Ranks give up nearly at once, and the first takes the others along.
constexpr double kAlmost = 0.9;

using NamedCall = std::pair<Primitive, const char*>;

// What is wrong with the errors of the others, whose timeout began at `since`.
std::string problem_with_timeouts(const JobEnd& end, int culprit, double since) {
  return problem_with_errors(end, {.code = ErrorCode::timeout,
                                   .culprit = culprit,
                                   .exempt = {culprit},
                                   .since = since + kTimeoutSeconds,
                                   .within = kEpsilonSeconds,
                                   .not_before = kAlmost * kTimeoutSeconds});
}

// A step of the rank's plan for the last call, where a fault can strike.
std::uint64_t drawn_step(const Case& c, int rank) {
  return mix(c.seed, 3) % static_cast<std::uint64_t>(count_steps(numbered(c, kDelayCalls), rank));
}

// ---- absent: a rank stays away from the making of the group (Case::variant 0), or from a call after some that went
// well (1).

enum Absence : std::uint64_t { kFromGroup, kFromCall };

void add_absent(const Selection& selection, std::vector<Case>& all) {
  DrillCases drills(selection, "absent", drill_ranks(selection), all);
  std::vector<Primitive> calls = {Primitive::allreduce};
  if (drills.full())
    calls.insert(calls.end(), {Primitive::broadcast, Primitive::reduce, Primitive::gatherv, Primitive::scatter,
                               Primitive::alltoall, Primitive::allgather, Primitive::exscan});
  for (const std::string& backend : drills.backends()) {
    drills.add(backend, Primitive::allreduce).variant = kFromGroup;
    for (const Primitive call : calls) drills.add(backend, call).variant = kFromCall;
  }
}

Finding run_absent(Rank& /*rank*/, const Case& c) {
  const int absent = victim_of(c);
  const auto oddity = c.variant == kFromGroup ? Drill::Oddity::never_joins : Drill::Oddity::stays_away;
  Job job(spec_of({.c = c, .calls = kDelayCalls, .odd = absent, .oddity = oddity}, {.timeout = kTimeout}));
  job.await_point(absent, "away");
  const double away = job.now();
  job.await_reports_of_others(absent);
  job.go_on(absent);
  const JobEnd end = job.finish();
  return Finding::of(
      first_of({problem_with_timeouts(end, absent, away), problem_with_end(end, absent), problem_with_traces(end)}));
}

// ---- late: a rank that pauses before a step of its plan for a while, or for nearly as long as the timeout
// (Case::variant 0 and 1), is not dead: it is waited for, and the data is right.

enum Lateness : std::uint64_t { kAWhile, kNearlyTooLong, kLatenesses };
constexpr int kDelayMs[] = {300, 700};
// The second one leaves room for a machine that is busy with other things.
constexpr Duration kTimeouts[] = {kPatient, std::chrono::milliseconds(1500)};

void add_late(const Selection& selection, std::vector<Case>& all) {
  DrillCases drills(selection, "late", drill_ranks(selection), all);
  std::vector<NamedCall> calls = {{Primitive::allreduce, "bde"}};
  if (drills.full())
    calls.insert(calls.end(), {{Primitive::reduce, "linear"},
                               {Primitive::reduce_scatter, "pairwise"},
                               {Primitive::alltoallv, "pairwise"},
                               {Primitive::barrier, "dissemination"}});
  for (const std::string& backend : drills.backends()) {
    for (const auto& [primitive, algorithm] : calls) {
      for (std::uint64_t way = kAWhile; way < kLatenesses; ++way) {
        Case& c = drills.add(backend, primitive, DType::int32);
        c.algorithm = algorithm;
        if (primitive != Primitive::barrier && drills.number() % 2 != 0) c.count = 50'000;
        c.variant = way;
      }
    }
  }
}

Finding run_late(Rank& /*rank*/, const Case& c) {
  const int slow = victim_of(c);
  const std::uint64_t way = c.variant % kLatenesses;
  Job job(
      spec_of({.c = c, .calls = kDelayCalls}, {.timeout = kTimeouts[way],
                                               .fault = fmt::format("delay:rank={},op={},step={},ms={}", slow,
                                                                    kDelayCalls, drawn_step(c, slow), kDelayMs[way])}));
  const double started = job.now();
  const JobEnd end = job.finish();
  const bool struck = end.of(slow).ended_at - started >= kDelayMs[way] * 1e-3;
  return Finding::of(
      first_of({problem_with_success(end), struck ? "" : "the delay did not happen", problem_with_traces(end)}));
}

// ---- stopped: SIGSTOP. If a rank is stopped for less than the timeout, the others wait for it, and the data is right.
// If it is stopped for longer, the others name it, and it ends with an error itself once it goes on. It is stopped
// before a step of its plan, for a short time (Case::variant 0) or a long one (1), or between two calls for a long time
// (2).

enum Stop : std::uint64_t { kShort, kLong, kLongBetween, kStops };
// Beyond the moment when the others begin to wonder.
constexpr Duration kShortStop = std::chrono::milliseconds(400);

void add_stopped(const Selection& selection, std::vector<Case>& all) {
  DrillCases drills(selection, "stopped", drill_ranks(selection), all);
  std::vector<NamedCall> calls = {{Primitive::allreduce, "ring"}};
  if (drills.full())
    calls.insert(calls.end(), {{Primitive::broadcast, "scatter_allgather"},
                               {Primitive::allgather, "bruck"},
                               {Primitive::alltoall, "pairwise"},
                               {Primitive::allreduce, "rabenseifner"}});
  for (const std::string& backend : drills.backends()) {
    for (const auto& [primitive, algorithm] : calls) {
      for (std::uint64_t way = kShort; way < kStops; ++way) {
        Case& c = drills.add(backend, primitive);
        c.algorithm = algorithm;
        if (drills.number() % 2 != 0) c.count = 50'000;
        c.variant = way;
      }
    }
  }
}

Finding run_stopped(Rank& /*rank*/, const Case& c) {
  const int victim = victim_of(c);
  const bool between = c.variant == kLongBetween;
  JobSpec spec{.timeout = c.variant == kShort ? kPatient : kTimeout};
  if (!between) spec.fault = fmt::format("stop:rank={},op={},step={}", victim, kDelayCalls, drawn_step(c, victim));
  Job job(spec_of({.c = c, .calls = kDelayCalls, .asks_to_call = between}, spec));
  if (between) {
    job.await_point_of_all("call");
    job.signal(victim, SIGSTOP);
  }
  const bool stopped = job.await_stopped(victim);
  const double since = job.now();
  if (between) job.go_on_all();
  if (c.variant == kShort)
    job.pause(kShortStop);
  else
    job.await_reports_of_others(victim);
  job.signal(victim, SIGCONT);
  const JobEnd end = job.finish();
  if (!stopped) return Finding::fail("the fault did not strike: " + describe(end, victim));
  if (c.variant == kShort) return Finding::of(first_of({problem_with_success(end), problem_with_traces(end)}));

  const auto& own = end.of(victim).report;
  return Finding::of(
      first_of({problem_with_timeouts(end, victim, since), problem_with_end(end, victim),
                own && own->good() ? "the rank that was stopped noticed nothing" : "", problem_with_traces(end)}));
}

}  // namespace

const Property kFaultAbsent{"absent",
                            "a rank that never comes is named by the others when the timeout is over, not later",
                            Property::Kind::fault,
                            &add_absent,
                            &run_absent,
                            OnGpus::buffers};
const Property kFaultLate{"late", "a rank that is slow, but not slower than the timeout, is waited for",
                          Property::Kind::fault, &add_late, &run_late};
const Property kFaultStopped{"stopped",
                             "a rank that stands still is waited for until the timeout, and then named by the others",
                             Property::Kind::fault, &add_stopped, &run_stopped};

}  // namespace col::colcheck

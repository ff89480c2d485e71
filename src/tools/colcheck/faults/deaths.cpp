// A rank that dies, or ends too early: the others learn of it within a second, by name, and nothing is left of the job.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <exception>
#include <numeric>
#include <thread>

#include <fmt/format.h>

#include "colcheck/engine/forms.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/judge.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

// The call that is struck is not the first of its group.
constexpr int kDeathCalls = 2;

// ---- killed: SIGKILL before a step of an algorithm's plan.
//
// The number of steps comes from the plan builders. In --quick the first, the middle and the last step of one rank's
// plan are tried, the rank differing from case to case; in --full every step of every rank of four.

// In one case of four what a rank sends does not fit the buffers between ranks, so that the kill finds transfers
// half done.
constexpr std::size_t kSmall = 37, kLarge = 60'000;

// Case::variant: the rank, and the step before which it is killed. Step kThree means the first, the middle and the
// last, kEvery all.
constexpr std::uint64_t kThree = 999, kEvery = 998;
// Jobs at a time: most of a drill is waiting.
constexpr std::size_t kAtOnce = 4;

struct Blow {
  int victim = 0;
  std::uint64_t step = kThree;
};
std::uint64_t encode_blow(const Blow& blow) {
  return static_cast<std::uint64_t>(blow.victim) * 1000 + blow.step;
}
Blow blow_of(const Case& c) {
  return {static_cast<int>(c.variant / 1000), c.variant % 1000};
}

std::vector<int> steps_of(const Case& c) {
  const Blow blow = blow_of(c);
  if (blow.step != kThree && blow.step != kEvery) return {static_cast<int>(blow.step)};
  const int count = count_steps(numbered(c, kDeathCalls), blow.victim);
  std::vector<int> every(static_cast<std::size_t>(count));
  std::iota(every.begin(), every.end(), 0);
  if (blow.step == kEvery || count == 0) return every;
  std::vector<int> steps = {0, count / 2, count - 1};
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  return steps;
}

// What is wrong with the errors that the others get when `victim` is gone.
std::string problem_with_survivors(const JobEnd& end, int victim, ErrorCode code = ErrorCode::peer_lost) {
  return problem_with_errors(end,
                             {.code = code, .culprit = victim, .exempt = {victim}, .since = end.of(victim).ended_at});
}

std::string kill_at(const Case& c, int step) {
  const int victim = blow_of(c).victim;
  Job job(spec_of({.c = c, .calls = kDeathCalls},
                  {.fault = fmt::format("kill:rank={},op={},step={}", victim, kDeathCalls, step)}));
  const JobEnd end = job.finish();
  const RankEnd& killed = end.of(victim);
  const bool struck = killed.ending.signal == SIGKILL && !killed.overdue && !killed.report;
  const std::string problem = first_of({struck ? "" : "the fault did not strike: " + describe(end, victim),
                                        problem_with_survivors(end, victim), problem_with_traces(end)});
  if (problem.empty()) return {};
  Case alone = c;
  alone.variant = encode_blow({victim, static_cast<std::uint64_t>(step)});
  return fmt::format("rank {} killed before its step {} ({}): {}", victim, step, token_of(alone), problem);
}

// A rank without data may have nothing to do in a v-form.
void add_blows(Case c, Effort effort, std::vector<Case>& all) {
  const int first = victim_of(c);
  for (int i = 0; i < c.ranks; ++i) {
    const int victim = (first + i) % c.ranks;
    if (count_steps(numbered(c, kDeathCalls), victim) == 0) continue;
    c.variant = encode_blow({victim, effort == Effort::full ? kEvery : kThree});
    all.push_back(c);
    if (effort == Effort::quick) return;
  }
}

void add_killed(const Selection& selection, std::vector<Case>& all) {
  const std::vector<int> sizes = drill_ranks(selection);
  std::uint64_t number = 0;
  for (const std::string& backend : drill_backends(selection)) {
    for (const Form& form : forms_of(selection)) {
      // Buffers on GPUs make no difference to the steps of a plan.
      const bool on_gpus = selection.is_about_gpus();
      if (on_gpus && form.built_in != nullptr && selection.effort == Effort::quick) continue;
      const bool parametrised = form.algorithm.find(':') != std::string::npos;
      if (form.algorithm.empty() || (parametrised && selection.algorithms.empty()) ||
          (form.is_native() && form.backend != backend) || sizes.empty())
        continue;
      Case c;
      c.property = "killed";
      c.seed = mix(selection.seed, ++number);
      c.backend = backend;
      c.ranks = selection.effort == Effort::full ? sizes.back() : sizes[c.seed % sizes.size()];
      if (!serves(form, c.ranks)) c.ranks = sizes.back();
      if (!serves(form, c.ranks)) continue;
      c.primitive = form.primitive;
      c.algorithm = form.algorithm;
      if (form.primitive != Primitive::barrier) {
        c.dtype = DType::int32;
        c.count = number % 4 == 0 ? kLarge : kSmall;
      }
      if (is_rooted(form.primitive)) c.root = static_cast<int>(mix(c.seed, 1) % static_cast<std::uint64_t>(c.ranks));
      add_blows(c, selection.effort, all);
    }
  }
}

Finding run_killed(Rank& /*rank*/, const Case& c) {
  const std::vector<int> steps = steps_of(c);
  if (steps.empty()) return Finding::skip(fmt::format("rank {} has nothing to do in this call", blow_of(c).victim));
  std::vector<std::string> problems(steps.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < steps.size(); i = next++) {
      try {
        problems[i] = kill_at(c, steps[i]);
      } catch (const std::exception& error) {  // no process or descriptor left
        problems[i] = error.what();
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < std::min(kAtOnce, steps.size()); ++i) threads.emplace_back(work);
  }
  return Finding::of(first_of(problems));
}

// ---- killed_joining: SIGKILL while the group is being made. Case::variant is how many microseconds after the order to
// join it strikes; 0: before the victim gets the order.

// A group of four is made in about ten milliseconds.
constexpr std::uint64_t kLatestUs = 15'000;

void add_killed_joining(const Selection& selection, std::vector<Case>& all) {
  DrillCases drills(selection, "killed_joining", drill_ranks(selection), all);
  const std::uint64_t blows = drills.full() ? 20 : 4;
  for (const std::string& backend : drills.backends()) {
    if (is_over_hosts(backend)) continue;  // before it is connected, only its own host can see that it is gone
    for (std::uint64_t blow = 0; blow < blows; ++blow) {
      Case& c = drills.add(backend, Primitive::barrier);
      if (blow > 0) c.variant = 1 + mix(c.seed, 1) % kLatestUs;
    }
  }
}

Finding run_killed_joining(Rank& /*rank*/, const Case& c) {
  const int victim = victim_of(c);
  // Should the group be made before the blow, then the victim waits there, and the others miss it in the call.
  Job job(spec_of({.c = c, .asks_to_join = true, .asks_to_call = true}));
  job.await_point_of_all("ready");
  for (int rank = 0; rank < c.ranks; ++rank) {
    if (rank != victim || c.variant > 0) job.go_on(rank);
  }
  job.pause(std::chrono::microseconds(c.variant));
  job.signal(victim, SIGKILL);
  for (int rank = 0; rank < c.ranks; ++rank) {
    if (rank != victim && job.await_point(rank, "call")) job.go_on(rank);
  }
  const JobEnd end = job.finish();
  return Finding::of(first_of({problem_with_survivors(end, victim), problem_with_traces(end)}));
}

// ---- exits_early: a rank ends with exit code 0 while the others still need it. It ends inside of a call
// (Case::variant 0), between two calls without a word (1), or after col::finalize() (2), when it has not died, but made
// fewer calls than the others.

enum Exit : std::uint64_t { kInside, kBetween, kAfterFinalize, kExits };

void add_exits_early(const Selection& selection, std::vector<Case>& all) {
  DrillCases drills(selection, "exits_early", drill_ranks(selection), all);
  std::vector<Primitive> calls = {Primitive::allreduce, Primitive::gather};
  if (drills.full())
    calls.insert(calls.end(), {Primitive::broadcast, Primitive::scatterv, Primitive::alltoall, Primitive::scan});
  for (const std::string& backend : drills.backends()) {
    for (const Primitive call : calls) {
      for (std::uint64_t way = 0; way < kExits; ++way) {
        Case& c = drills.add(backend, call);
        c.algorithm = collective_of(call) == Collective::allreduce ? "ring" : "";
        c.variant = way;
      }
    }
  }
}

Finding run_exits_early(Rank& /*rank*/, const Case& c) {
  const int leaver = victim_of(c);
  Drill drill{.c = c, .calls = kDeathCalls};
  JobSpec spec;
  if (c.variant == kInside) {
    // Without a named algorithm, the first step is the only one that is there for certain.
    const int steps = c.algorithm.empty() ? 1 : count_steps(numbered(c, kDeathCalls), leaver);
    spec.fault = fmt::format("exit:rank={},op={},step={},code=0", leaver, kDeathCalls,
                             mix(c.seed, 3) % static_cast<std::uint64_t>(steps));
  } else {
    drill.odd = leaver;
    drill.oddity = c.variant == kBetween ? Drill::Oddity::walks_out : Drill::Oddity::leaves;
  }
  Job job(spec_of(drill, spec));
  const JobEnd end = job.finish();
  const RankEnd& left = end.of(leaver);
  const bool as_planned = left.ending.exit_code == 0 && !left.report;
  const ErrorCode code = c.variant == kAfterFinalize ? ErrorCode::mismatch : ErrorCode::peer_lost;
  return Finding::of(first_of({as_planned ? "" : "the fault did not strike: " + describe(end, leaver),
                               problem_with_survivors(end, leaver, code), problem_with_traces(end)}));
}

// ---- survivors: after a death there is a way on. The others make a group without the dead rank, and the data is right
// there.

void add_survivors(const Selection& selection, std::vector<Case>& all) {
  std::vector<int> sizes = drill_ranks(selection);
  if (sizes.size() > 1) sizes = {sizes.back()};
  DrillCases drills(selection, "survivors", std::move(sizes), all);
  std::vector<Primitive> calls = {Primitive::allreduce};
  if (drills.full())
    calls.insert(calls.end(), {Primitive::reduce, Primitive::allgatherv, Primitive::alltoall, Primitive::barrier});
  for (const std::string& backend : drills.backends()) {
    for (const Primitive call : calls) drills.add(backend, call, DType::int32, 1009);
  }
}

Finding run_survivors(Rank& /*rank*/, const Case& c) {
  const int victim = victim_of(c);
  Job job(spec_of({.c = c, .calls = kDeathCalls, .regroups = true},
                  {.fault = fmt::format("kill:rank={},op={}", victim, kDeathCalls)}));
  const JobEnd end = job.finish();
  std::string problem = problem_with_survivors(end, victim);
  for (int rank = 0; rank < c.ranks && problem.empty(); ++rank) {
    if (rank == victim) continue;
    const std::string& regrouped = end.of(rank).report->regrouped;
    if (regrouped != "success") problem = fmt::format("rank {} in a new group of the others: {}", rank, regrouped);
  }
  return Finding::of(first_of({problem, problem_with_traces(end)}));
}

}  // namespace

const Property kFaultKilled{"killed",
                            "a rank killed at any step of any algorithm is named by all others within a second",
                            Property::Kind::fault,
                            &add_killed,
                            &run_killed,
                            OnGpus::buffers};
const Property kFaultKilledJoining{"killed_joining",
                                   "a rank killed while its group is being made is named by all others within a second",
                                   Property::Kind::fault, &add_killed_joining, &run_killed_joining};
const Property kFaultExitsEarly{
    "exits_early",         "a rank that ends too early, with exit code 0, is named within a second",
    Property::Kind::fault, &add_exits_early,
    &run_exits_early,      OnGpus::buffers};
const Property kFaultSurvivors{
    "survivors",           "after a death the others make a new group and go on, with the right data",
    Property::Kind::fault, &add_survivors,
    &run_survivors,        OnGpus::buffers};

}  // namespace col::colcheck

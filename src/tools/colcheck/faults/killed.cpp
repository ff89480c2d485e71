// SIGKILL before a step of an algorithm's plan: the survivors learn of it within a second, by name, and nothing is
// left.
//
// The number of steps comes from the plan builders. In --quick the first, the middle and the last step of one rank's
// plan are tried, the rank differing from case to case; in --full every step of every rank of four.
#include <algorithm>
#include <atomic>
#include <exception>
#include <numeric>
#include <thread>

#include <fmt/format.h>

#include "colcheck/engine/forms.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/drill.hpp"
#include "colcheck/faults/judge.hpp"
#include "colcheck/faults/steps.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

// The call that is struck is not the first of its group.
constexpr int kCalls = 2;
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
  const int count = count_steps(numbered(c, kCalls), blow.victim);
  std::vector<int> every(static_cast<std::size_t>(count));
  std::iota(every.begin(), every.end(), 0);
  if (blow.step == kEvery || count == 0) return every;
  std::vector<int> steps = {0, count / 2, count - 1};
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  return steps;
}

std::string kill_at(const Case& c, int step) {
  const int victim = blow_of(c).victim;
  Drill drill{.c = c, .calls = kCalls};
  Job job({.ranks = c.ranks,
           .arguments = {"--fault-rank", encode(drill)},
           .fault = fmt::format("kill:rank={},op={},step={}", victim, kCalls, step)});
  const JobEnd end = job.finish();
  const RankEnd& killed = end.ranks[static_cast<std::size_t>(victim)];
  const bool struck = killed.ending.signal == SIGKILL && !killed.overdue && !killed.report;
  const std::string problem = first_of(
      {struck ? "" : "the fault did not strike: " + describe(end, victim),
       problem_with_errors(
           end, {.code = ErrorCode::peer_lost, .culprit = victim, .exempt = {victim}, .since = killed.ended_at}),
       problem_with_traces(end)});
  if (problem.empty()) return {};
  Case alone = c;
  alone.variant = encode_blow({victim, static_cast<std::uint64_t>(step)});
  return fmt::format("rank {} killed before its step {} ({}): {}", victim, step, token_of(alone), problem);
}

// A rank without data may have nothing to do in a v-form.
void add_blows(Case c, Effort effort, std::vector<Case>& all) {
  const auto first = static_cast<int>(mix(c.seed, 2) % static_cast<std::uint64_t>(c.ranks));
  for (int i = 0; i < c.ranks; ++i) {
    const int victim = (first + i) % c.ranks;
    if (count_steps(numbered(c, kCalls), victim) == 0) continue;
    c.variant = encode_blow({victim, effort == Effort::full ? kEvery : kThree});
    all.push_back(c);
    if (effort == Effort::quick) return;
  }
}

void cases(const Selection& selection, std::vector<Case>& all) {
  const std::vector<int> sizes = drill_ranks(selection);
  std::uint64_t number = 0;
  for (const std::string& backend : selection.backends) {
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

Finding run(Rank& /*rank*/, const Case& c) {
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

}  // namespace

const Property kFaultKilled{"killed",
                            "a rank killed at any step of any algorithm is named by all others within a second",
                            Property::Kind::fault,
                            &cases,
                            &run,
                            OnGpus::buffers};

}  // namespace col::colcheck

#include "colbench/commands/timed_simulation.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "common/text.hpp"

namespace col::colbench {
namespace {

using Clock = std::chrono::steady_clock;

struct TimeIsUp {};

// Some 110 bytes each.
constexpr std::size_t kMostStepsAtOnce = 8'000'000;
constexpr int kSample = 16;

}  // namespace

std::size_t steps_at_once(const PlanProblem& problem, const PlanOfRank& plans) {
  const int sample = std::min(kSample, problem.size());
  std::size_t sum = 0;
  Round round;
  for (int i = 0; i < sample; ++i) {
    const Plan plan = plans(static_cast<int>(static_cast<long long>(i) * problem.size() / sample));
    std::size_t most = 0;
    for (std::size_t k = 0; k < plan.rounds; ++k) {
      plan.round(k, round);
      const auto steps = std::count_if(round.steps().begin(), round.steps().end(), [](const Step& step) {
        return step.kind == Step::Kind::send || step.kind == Step::Kind::recv;
      });
      most = std::max(most, static_cast<std::size_t>(steps));
    }
    sum += most;
  }
  return sum * static_cast<std::size_t>(problem.size()) / static_cast<std::size_t>(sample);
}

TimedSimulation simulate_within(Duration limit, const PlanProblem& problem, const PlanOfRank& plans,
                                const CostModel& model, std::size_t element_size, std::size_t wide_size) {
  TimedSimulation result;
  const auto begin = Clock::now();
  if (const std::size_t steps = steps_at_once(problem, plans); steps > kMostStepsAtOnce) {
    result.why_not = fmt::format("it has about {} messages under way at once", tools::grouped(steps / 2));
    return result;
  }
  const PlanOfRank watched = [&](int rank) {
    Plan plan = plans(rank);
    plan.generate = [&, generate = std::move(plan.generate)](std::size_t index, Round& round) {
      if (Clock::now() - begin > limit) throw TimeIsUp();
      generate(index, round);
    };
    return plan;
  };
  try {
    result.seconds = simulate(problem, watched, model, element_size, wide_size).seconds;
  } catch (const TimeIsUp&) {
    result.why_not = "simulating it takes longer than --max-time";
  }
  result.took = std::chrono::duration<double>(Clock::now() - begin).count();
  return result;
}

}  // namespace col::colbench

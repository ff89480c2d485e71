#include "colbench/plans/simulated_costs.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "colbench/plans/notation.hpp"
#include "common/text.hpp"
#include "core/clock/clock.hpp"

namespace col::colbench {
namespace {

using Clock = core::Clock;

struct TimeIsUp {};

constexpr std::size_t kBytesPerStep = 80, kMostBytes = std::size_t{4} << 30;
constexpr int kSample = 16;

// As many as memory has room for, and leaves half of itself to others.
std::size_t most_steps_at_once() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  const std::size_t half =
      pages > 0 && page > 0 ? static_cast<std::size_t>(pages) / 2 * static_cast<std::size_t>(page) : kMostBytes;
  return std::min(half, kMostBytes) / kBytesPerStep;
}

class Search {
 public:
  Search(const CostAt& cost, double precision) : cost_(cost), precision_(precision) {}

  struct Best {
    std::size_t candidate = 0;
    double cost = 0;
  };
  std::optional<Best> best_at(std::size_t bytes, std::span<const std::size_t> candidates) const {
    std::optional<Best> best;
    for (const std::size_t candidate : candidates) {
      const auto cost = cost_(candidate, bytes);
      if (cost && (!best || *cost < best->cost)) best = Best{candidate, *cost};
    }
    return best;
  }

  // Adds the sizes between two sizes, and the upper one. Requires: the lower one is added.
  void between(std::size_t lower, Best at_lower, std::size_t upper, Best at_upper,
               std::span<const std::size_t> candidates) {
    const auto middle =
        static_cast<std::size_t>(std::llround(std::sqrt(static_cast<double>(lower) * static_cast<double>(upper))));
    const bool near = static_cast<double>(upper) <= precision_ * static_cast<double>(lower);
    if (at_lower.candidate == at_upper.candidate || near || middle <= lower || middle >= upper) {
      add(upper, at_upper.candidate);
      return;
    }
    std::vector<std::size_t> possible;
    for (const std::size_t candidate : candidates) {
      const auto cost = cost_(candidate, lower);
      if (cost && *cost <= at_upper.cost) possible.push_back(candidate);
    }
    const auto best = best_at(middle, possible);
    if (!best) {
      add(upper, at_upper.candidate);
      return;
    }
    between(lower, at_lower, middle, *best, possible);
    between(middle, *best, upper, at_upper, possible);
  }

  void add(std::size_t bytes, std::size_t candidate) {
    if (!ranges_.empty() && ranges_.back().candidate == candidate)
      ranges_.back().most = bytes;
    else
      ranges_.push_back({bytes, bytes, candidate});
  }

  std::vector<BestRange> take() { return std::move(ranges_); }

 private:
  const CostAt& cost_;
  double precision_;
  std::vector<BestRange> ranges_;
};

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
  if (const std::size_t steps = steps_at_once(problem, plans); steps > most_steps_at_once()) {
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

SimulatedCosts::SimulatedCosts(Setting setting, std::span<const PlanSource> sources)
    : setting_(std::move(setting)), sources_(sources) {
  budgets_.assign(sources.size(), {std::chrono::duration<double>(setting_.max_time).count(), 0});
}

const SimulatedCosts::Cost& SimulatedCosts::at(std::size_t source, std::size_t bytes) {
  const auto known = known_.find({source, bytes});
  if (known != known_.end()) return known->second;
  return known_.emplace(std::pair(source, bytes), find(source, bytes)).first->second;
}

SimulatedCosts::Cost SimulatedCosts::find(std::size_t number, std::size_t bytes) {
  const PlanSource& source = sources_[number];
  CellSpec cell = setting_.cell;
  cell.bytes = bytes;
  PlanProblem::Spec spec = problem_of(cell, source.spec());
  spec.node_of_rank = setting_.node_of_rank;
  const PlanProblem problem(std::move(spec));
  Cost cost;
  if (const auto refusal = source.refuse(problem)) {
    cost.refused = true;
    cost.why_not = *refusal;
    return cost;
  }
  if (source.algorithm() != nullptr) {
    cost.closed_form = closed_form_seconds(*source.algorithm(), problem, setting_.model, size_of(cell.dtype));
  }
  Budget& budget = budgets_[number];
  if (budget.last > budget.left) {  // the next one will hardly be shorter
    cost.why_not = "simulating it takes longer than --max-time";
    return cost;
  }
  setting_.progress(source.name(), bytes);
  const auto limit = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(budget.left));
  TimedSimulation simulation =
      simulate_within(limit, problem, source.plans(problem), setting_.model, size_of(cell.dtype), wide_size_of(cell));
  budget.left -= simulation.took;
  budget.last = simulation.took;
  cost.simulated = simulation.seconds;
  cost.why_not = std::move(simulation.why_not);
  return cost;
}

std::vector<BestRange> best_ranges(std::span<const std::size_t> sizes, std::size_t candidates, const CostAt& cost,
                                   double precision) {
  std::vector<std::size_t> all(candidates);
  std::iota(all.begin(), all.end(), std::size_t{0});
  Search search(cost, precision);
  std::optional<Search::Best> before;
  std::size_t lower = 0;
  for (const std::size_t bytes : sizes) {
    const auto best = search.best_at(bytes, all);
    if (!best) continue;
    if (before)
      search.between(lower, *before, bytes, *best, all);
    else
      search.add(bytes, best->candidate);
    before = best;
    lower = bytes;
  }
  return search.take();
}

std::vector<std::string> range_lines(std::span<const BestRange> ranges,
                                     const std::function<std::string(std::size_t candidate)>& name) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const bool first = i == 0, last = i + 1 == ranges.size();
    const std::string where = range_text(first ? std::nullopt : std::optional(ranges[i - 1].most),
                                         last ? std::nullopt : std::optional(ranges[i].most));
    lines.push_back(fmt::format("{}: {}", where, name(ranges[i].candidate)));
  }
  return lines;
}

}  // namespace col::colbench

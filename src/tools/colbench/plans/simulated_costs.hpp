// What algorithms cost in a model, within a time budget, and the sizes at which the fastest one changes.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <col/plan.hpp>

#include "colbench/plans/plan_source.hpp"

namespace col::colbench {

struct TimedSimulation {
  std::optional<double> seconds = {};  // the time of the collective; nothing if the simulation was given up
  std::string why_not = {};            // the reason then: "it takes longer than …"
  double took = 0;                     // seconds that the simulation took
};

// col::simulate(), given up after `limit` (checked when a rank begins a round), or at once if it would need gigabytes:
// if all ranks together have that many messages in one round. Throws what col::simulate() throws.
TimedSimulation simulate_within(Duration limit, const PlanProblem& problem, const PlanOfRank& plans,
                                const CostModel& model, std::size_t element_size, std::size_t wide_size);

// Sends and receives of all ranks together in their largest rounds, estimated from a sample of ranks.
std::size_t steps_at_once(const PlanProblem& problem, const PlanOfRank& plans);

// The costs of algorithms at any size.
class SimulatedCosts {
 public:
  struct Setting {
    CellSpec cell;  // its bytes are those of the call of cost()
    std::vector<int> node_of_rank = {};
    CostModel model = {};
    Duration max_time = {};  // for each algorithm, for all sizes together
    // Called before every simulation.
    std::function<void(const std::string& algorithm, std::size_t bytes)> progress = [](const auto&, auto) {};
  };
  // `sources` must outlive it.
  SimulatedCosts(Setting setting, std::span<const PlanSource> sources);

  struct Cost {
    std::optional<double> simulated = {};
    std::optional<double> closed_form = {};
    std::string why_not = {};  // nothing was simulated: "needs an even number of ranks, …"
    bool refused = false;      // it cannot serve the collective at all
    // The time by which algorithms are ranked.
    std::optional<double> seconds() const { return simulated ? simulated : refused ? std::nullopt : closed_form; }
  };
  // Remembers results. Blocks for the rest of max_time at most.
  const Cost& at(std::size_t source, std::size_t bytes);

 private:
  Cost find(std::size_t source, std::size_t bytes);

  Setting setting_;
  std::span<const PlanSource> sources_;
  struct Budget {
    double left = 0, last = 0;  // seconds: what is left, what the last simulation took
  };
  std::vector<Budget> budgets_;
  std::map<std::pair<std::size_t, std::size_t>, Cost> known_;
};

// ---- Crossovers -----------------------------------------------------------------------------------------------------

// The cost of candidate number `candidate` at that size; nothing if it has none there.
using CostAt = std::function<std::optional<double>(std::size_t candidate, std::size_t bytes)>;

// The candidate is the fastest at `least`, at `most`, and at all sizes in between that were tried.
struct BestRange {
  std::size_t least = 0, most = 0;  // bytes
  std::size_t candidate = 0;
};

// `sizes` is ascending. If the fastest candidate differs between two neighbouring sizes, the place of the change is
// searched until it is known to a factor of `precision`. Among equal candidates, the first one counts as the fastest.
// Sizes at which no candidate has a cost are left out.
//
// It assumes that costs grow with the size: a candidate that is slower at the lower end than the fastest one at the
// upper end is not tried in between.
std::vector<BestRange> best_ranges(std::span<const std::size_t> sizes, std::size_t candidates, const CostAt& cost,
                                   double precision = 1.1);

// "up to 12K: bde; 12K to 3M: rabenseifner; above 3M: ring", on several lines if there are more. `sizes` as above.
std::vector<std::string> range_lines(std::span<const BestRange> ranges,
                                     const std::function<std::string(std::size_t candidate)>& name);

}  // namespace col::colbench

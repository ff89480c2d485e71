// The costs of algorithms in a model, at any size, within a time budget.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "colbench/commands/plan_source.hpp"

namespace col::colbench {

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
  CostModel one_link_;  // for closed forms, which know only one link
  struct Budget {
    double left = 0, last = 0;  // seconds: what is left, what the last simulation took
  };
  std::vector<Budget> budgets_;
  std::map<std::pair<std::size_t, std::size_t>, Cost> known_;
};

}  // namespace col::colbench

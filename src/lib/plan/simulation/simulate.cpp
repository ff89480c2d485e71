// Where ranks are alike, one is simulated for several. Where they are so in the first rounds only, as in a reduction
// that adds in the order of the ranks, those rounds are simulated so. Then each rank's own work of the last of them
// says when it ends that, and there all ranks go on.
#include "plan/simulation/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/error.hpp>

#include "plan/simulation/simulator.hpp"
#include "plan/simulation/symmetry.hpp"

namespace col::plan::simulation {
namespace {

// Numbered from 0 on, whatever the caller calls them.
std::vector<int> dense_nodes(const PlanProblem& problem) {
  std::vector<int> nodes = problem.spec().node_of_rank;
  nodes.resize(static_cast<std::size_t>(problem.size()), 0);
  std::map<int, int> numbers;
  for (int& node : nodes) node = numbers.emplace(node, static_cast<int>(numbers.size())).first->second;
  return nodes;
}

// Plans from one round on, to before another one.
PlanOfRank part_of(const PlanOfRank& plans, std::size_t begin, std::size_t end) {
  return [=, &plans](int rank) {
    Plan plan = plans(rank);
    plan.rounds = std::min(plan.rounds, end) - std::min(plan.rounds, begin);
    plan.generate = [begin, generate = std::move(plan.generate)](std::size_t index, Round& round) {
      generate(begin + index, round);
    };
    return plan;
  };
}

double last_arrival(const RankState& state) {
  return state.arrived_at.empty() ? state.began_at
                                  : *std::max_element(state.arrived_at.begin(), state.arrived_at.end());
}

// When a rank ends its round that `reader` is to read next, whose messages arrive as those of `alike` did.
double end_of_round(RankState& own, const RankState& alike, RoundReader& reader) {
  reader.read(own);
  double free_at = alike.began_at, needed_at = alike.began_at;
  std::size_t need = 0;
  for (const Work& work : own.work) {
    for (; need < work.needs_end; ++need) needed_at = std::max(needed_at, alike.arrived_at[own.needs[need]]);
    free_at = std::max(free_at, needed_at) + work.seconds;
  }
  return std::max(free_at, last_arrival(alike));
}

void add(const Simulation& first, Simulation& rest) {
  rest.messages += first.messages;
  rest.bytes_inter += first.bytes_inter;
  rest.bytes_intra += first.bytes_intra;
  for (std::size_t node = 0; node < rest.node_bytes_out.size(); ++node) {
    rest.node_bytes_out[node] += first.node_bytes_out[node];
    rest.node_bytes_in[node] += first.node_bytes_in[node];
  }
}

// All that a simulation needs but the number of ranks.
struct Setting {
  const std::vector<int>& nodes;
  const PlanOfRank& plans;
  const CostModel& model;
  std::size_t element_size, wide_size;

  Simulator simulator(int simulated, const PlanOfRank& part, std::vector<double> starts = {}) const {
    return {nodes, simulated, part, model, element_size, wide_size, std::move(starts)};
  }
  int size() const noexcept { return static_cast<int>(nodes.size()); }
};

// Nothing if ranks go on, from the rounds that are alike, while messages of these are on their way: they would be in
// each other's way.
std::optional<Simulation> simulate_alike(const Setting& setting, const Alike& alike, RoundReader& reader) {
  const PlanOfRank in_step = part_of(setting.plans, 0, alike.rounds);
  Simulator some = setting.simulator(alike.ranks, in_step);
  const Simulation first = some.run();
  if (alike.is_all) return first;
  std::vector<double> ends;
  double last = 0;
  for (int r = 0; r < setting.size(); ++r) {
    const RankState& same = some.state_of(r % alike.ranks);
    RankState own;
    own.plan = setting.plans(r);
    own.next_round = alike.rounds - 1;
    ends.push_back(end_of_round(own, same, reader));
    last = std::max(last, last_arrival(same));
  }
  if (*std::min_element(ends.begin(), ends.end()) < last) return std::nullopt;
  const PlanOfRank rest = part_of(setting.plans, alike.rounds, ~std::size_t{0});
  Simulation whole = setting.simulator(setting.size(), rest, std::move(ends)).run();
  add(first, whole);
  return whole;
}

}  // namespace

Simulation simulate(const PlanProblem& problem, const PlanOfRank& plans, const CostModel& model,
                    std::size_t element_size, std::size_t wide_size, int many) {
  const std::vector<int> nodes = dense_nodes(problem);
  const Setting setting{nodes, plans, model, element_size, wide_size};
  if (setting.size() >= many) {
    RoundReader reader(model, element_size);
    const Alike alike = alike_ranks(nodes, plans, model, reader);
    try {
      if (alike.rounds > 0) {
        if (auto simulation = simulate_alike(setting, alike, reader)) return *std::move(simulation);
      }
    } catch (const Error&) {
      // It may not be true of plans in part: a message's other end may be in the other part.
      if (alike.is_all) throw;
    }
  }
  return setting.simulator(setting.size(), plans).run();
}

}  // namespace col::plan::simulation

namespace col {
namespace {

void check(std::string_view name, double value) {
  if (std::isfinite(value) && value >= 0) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} of a cost model is {}; it must be a number of at least 0", name, value));
}

}  // namespace

Simulation simulate(const PlanProblem& problem, const PlanOfRank& plans, const CostModel& model,
                    std::size_t element_size, std::size_t wide_size) {
  check("intra.alpha", model.intra.alpha);
  check("intra.beta", model.intra.beta);
  check("inter.alpha", model.inter.alpha);
  check("inter.beta", model.inter.beta);
  check("gamma", model.gamma);
  check("copy", model.copy);
  check("cores", model.cores);
  check("cpu_per_message", model.cpu_per_message);
  check("memory_bandwidth", model.memory_bandwidth);
  return plan::simulation::simulate(problem, plans, model, element_size, wide_size);
}

}  // namespace col

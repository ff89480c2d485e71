// Closed formulas against the simulator, and everything against the lower bounds.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <col/plan.hpp>

#include "cases.hpp"
#include "everyday.hpp"
#include "support/catch.hpp"

namespace col {
namespace {

using Catch::Approx;

// Latency counts, the wire counts, adding counts, adding is free.
std::vector<CostModel> models() {
  std::vector<CostModel> models(3);
  models[1].gamma = 0;
  models[2].intra = {.alpha = 1e-7, .beta = 1e-9};
  return models;
}

TEST_CASE("cost: every built-in algorithm of equal blocks on one node has a formula", "[plan][cost]") {
  for (const Algorithm& algorithm : algorithms()) {
    INFO(to_string(algorithm.collective) << " " << algorithm.name);
    const bool has_formula = closed_form_seconds(algorithm, 4, 64, {}).has_value();
    // Formulas are for ranks on one node.
    CHECK(has_formula == !(row_of(algorithm.collective).has_counts() || test::needs_nodes(algorithm)));
    CHECK(algorithm.cost.text.empty() != has_formula);
    // Estimates are said to be some, and are not far off.
    CHECK(algorithm.cost.least >= 0.75);
    CHECK(algorithm.cost.most <= 1.35);
  }
  Algorithm unknown = algorithms().front();
  unknown.cost = {};
  CHECK_FALSE(closed_form_seconds(unknown, 4, 64, {}).has_value());
}

TEST_CASE("cost: formulas are what the simulator finds", "[plan][cost]") {
  int cells = 0;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.cost.seconds == nullptr) continue;  // the case above says which may have none
    for (const CostModel& model : models()) {
      for (const std::size_t block : {std::size_t{64}, std::size_t{1024}, std::size_t{19200}}) {
        for (const int size : {1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 16, 31, 32, 64}) {
          const auto problem = test::everyday_problem(algorithm, size, block);
          if (!problem) continue;
          INFO(test::describe(algorithm, problem->spec()));
          const double simulated = simulate(*problem, plans_of(algorithm, *problem), model).seconds;
          const auto formula =
              closed_form_seconds(algorithm, size, test::everyday_bytes(algorithm.collective, size, block), model);
          REQUIRE(formula.has_value());
          CHECK(*formula >= algorithm.cost.least * simulated);
          CHECK(*formula <= algorithm.cost.most * simulated);
          ++cells;
        }
      }
    }
  }
  CHECK(cells > 4000);
}

TEST_CASE("cost: formulas follow segment and radix", "[plan][cost]") {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.cost.seconds == nullptr) continue;
    std::vector<PlanParameters> tried;
    // Dividers of every vector below: the last segment is as long as the others.
    if (algorithm.parameters.find("segment") != std::string_view::npos) tried = {{.segment = 100}, {.segment = 600}};
    if (algorithm.parameters.find("radix") != std::string_view::npos)
      tried = {{.radix = 2}, {.radix = 3}, {.radix = 8}};
    for (const PlanParameters& parameters : tried) {
      for (const int size : {2, 3, 4, 5, 8, 9, 13, 16, 27, 64}) {
        const auto problem = test::everyday_problem(algorithm, size, 4800, parameters);
        if (!problem) continue;
        INFO(test::describe(algorithm, problem->spec()));
        const double simulated = simulate(*problem, plans_of(algorithm, *problem), {}).seconds;
        const auto formula = closed_form_seconds(
            algorithm, size, test::everyday_bytes(algorithm.collective, size, 4800), {}, parameters);
        REQUIRE(formula.has_value());
        CHECK(*formula >= algorithm.cost.least * simulated);
        CHECK(*formula <= algorithm.cost.most * simulated);
      }
    }
  }
}

// Nodes that are equal, in order and in turns; of the next sizes; and anything else.
std::vector<std::vector<int>> layouts(int size, std::mt19937& random) {
  std::vector<std::vector<int>> layouts(3);
  const int nodes = std::uniform_int_distribution(2, std::max(2, size - 1))(random);
  const int per_node = (size + nodes - 1) / nodes;
  for (int rank = 0; rank < size; ++rank) {
    layouts[0].push_back(rank / per_node);
    layouts[1].push_back(rank % nodes);
    layouts[2].push_back(static_cast<int>(std::sqrt(rank)));  // 1, 3, 5 … ranks
  }
  layouts.push_back(test::random_nodes(size, random));
  return layouts;
}

TEST_CASE("cost: formulas for several nodes are what the simulator finds", "[plan][cost]") {
  const std::uint32_t seed = test::random_seed();
  std::mt19937 random(seed);
  int cells = 0, known_with_shared_ports = 0, rails = 0;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.cost.on_nodes == nullptr) continue;
    for (const int size : {2, 3, 4, 6, 7, 8, 12, 13, 16, 24, 31}) {
      for (const std::vector<int>& node_of_rank : layouts(size, random)) {
        for (CostModel model : models()) {
          const std::size_t block = std::array{64, 19200}[random() % 2];
          PlanProblem::Spec spec = test::everyday_spec(algorithm.collective, size, block);
          spec.node_of_rank = node_of_rank;
          if (row_of(algorithm.collective).rooted) spec.root = static_cast<int>(random() % static_cast<unsigned>(size));
          const PlanProblem problem(spec);
          if (algorithm.refuse(problem.request(0))) continue;
          for (const bool nic_shared : {false, true}) {
            model.nic_shared = nic_shared;
            INFO(test::describe(algorithm, spec) << ", nodes " << fmt::format("{}", fmt::join(node_of_rank, " "))
                                                 << (nic_shared ? ", one port each" : "") << ", seed " << seed);
            const auto formula = closed_form_seconds(algorithm, problem, model);
            // Of rails, there is one for equal nodes and one segment.
            const bool always = !nic_shared && algorithm.name != "two_level_rails";
            if (always) REQUIRE(formula.has_value());
            if (!formula) continue;
            CHECK(*formula == Approx(simulate(problem, plans_of(algorithm, problem), model).seconds).epsilon(0.01));
            ++cells;
            known_with_shared_ports += nic_shared;
            rails += algorithm.name == "two_level_rails";
          }
        }
      }
    }
  }
  CHECK(cells > 2000);
  CHECK(known_with_shared_ports > 200);
  CHECK(rails > 10);
}

TEST_CASE("cost: a formula for several nodes is one for one node where all ranks are on it", "[plan][cost]") {
  for (const Algorithm& algorithm : algorithms()) {
    const auto problem = test::everyday_problem(algorithm, 6, 64);
    if (!problem) continue;
    INFO(test::describe(algorithm, problem->spec()));
    const std::size_t bytes = test::everyday_bytes(algorithm.collective, 6, 64);
    CHECK(closed_form_seconds(algorithm, *problem, {}) == closed_form_seconds(algorithm, 6, bytes, {}));
  }
}

TEST_CASE("cost: what ranks of a node wait for together has no formula", "[plan][cost]") {
  const Algorithm& bde = test::algorithm(Collective::allreduce, "bde");
  const Algorithm& ring = test::algorithm(Collective::allreduce, "ring");
  PlanProblem::Spec spec = test::everyday_spec(Collective::allreduce, 6, 64);
  spec.node_of_rank = {0, 0, 0, 1, 1, 1};
  const PlanProblem in_order(spec);
  CHECK(closed_form_seconds(bde, in_order, {}).has_value());
  CHECK_FALSE(closed_form_seconds(bde, in_order, {.nic_shared = true}).has_value());
  CHECK_FALSE(closed_form_seconds(bde, in_order, {.cores = 2}).has_value());
  CHECK_FALSE(closed_form_seconds(bde, in_order, {.memory_bandwidth = 1e9}).has_value());
  // Of a ring in order, one rank of each node sends to the next.
  CHECK(closed_form_seconds(ring, in_order, {.nic_shared = true}) == closed_form_seconds(ring, in_order, {}));
  spec.node_of_rank = {0, 1, 0, 1, 0, 1};
  CHECK_FALSE(closed_form_seconds(ring, PlanProblem(spec), {.nic_shared = true}).has_value());
}

TEST_CASE("cost: formulas for thousands of ranks on hundreds of nodes are quick", "[plan][cost]") {
  std::vector<int> node_of_rank;
  for (int rank = 0; rank < 4096; ++rank) node_of_rank.push_back(rank / 8);
  const auto begin = std::chrono::steady_clock::now();
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.cost.on_nodes == nullptr) continue;
    PlanProblem::Spec spec = test::everyday_spec(algorithm.collective, 4096, 64);
    spec.node_of_rank = node_of_rank;
    CHECK(closed_form_seconds(algorithm, PlanProblem(spec), {}).value_or(0) > 0);
  }
  // A second where it is optimised and alone.
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));
}

TEST_CASE("cost: no algorithm is faster than the lower bound", "[plan][cost]") {
  for (const Algorithm& algorithm : algorithms()) {
    for (const CostModel& model : models()) {
      for (const std::size_t block : {std::size_t{1}, std::size_t{5000}}) {
        for (int size = 1; size <= 17; ++size) {
          const auto problem = test::everyday_problem(algorithm, size, block);
          if (!problem) continue;
          INFO(test::describe(algorithm, problem->spec()));
          const double simulated = simulate(*problem, plans_of(algorithm, *problem), model).seconds;
          const std::size_t bytes = test::everyday_bytes(algorithm.collective, size, block);
          CHECK(simulated >= lower_bound_seconds(algorithm.collective, size, bytes, model) * (1 - 1e-9));
        }
      }
    }
  }
}

TEST_CASE("cost: lower bounds are reached by what is known to be the best", "[plan][cost]") {
  const auto reaches = [](Collective collective, std::string_view name, const CostModel& model) {
    const Algorithm& algorithm = test::algorithm(collective, name);
    INFO(to_string(collective) << " " << name);
    const std::size_t bytes = collective == Collective::barrier ? 0 : 1 << 20;
    CHECK(*closed_form_seconds(algorithm, 16, bytes, model) ==
          Approx(lower_bound_seconds(collective, 16, bytes, model)));
  };
  const CostModel latency{.intra = {.alpha = 1, .beta = 0}, .gamma = 0};
  reaches(Collective::allreduce, "bde", latency);
  reaches(Collective::broadcast, "mst", latency);
  reaches(Collective::alltoall, "bruck", latency);
  reaches(Collective::barrier, "dissemination", latency);
  const CostModel wire{.intra = {.alpha = 0, .beta = 1}, .gamma = 0};
  reaches(Collective::allreduce, "ring", wire);
  reaches(Collective::allgather, "bruck", wire);
  reaches(Collective::reduce_scatter, "halving", wire);
  reaches(Collective::gather, "linear", wire);
  const CostModel adding{.intra = {.alpha = 0, .beta = 0}, .gamma = 1};
  reaches(Collective::allreduce, "rabenseifner", adding);
  reaches(Collective::reduce_scatter, "ring", adding);
}

TEST_CASE("cost: nothing to move costs nothing, except in a barrier", "[plan][cost]") {
  for (const Algorithm& algorithm : algorithms()) {
    INFO(to_string(algorithm.collective) << " " << algorithm.name);
    const bool is_barrier = algorithm.collective == Collective::barrier;
    CHECK((lower_bound_seconds(algorithm.collective, 8, 0, {}) > 0) == is_barrier);
    CHECK(lower_bound_seconds(algorithm.collective, 1, 100, {}) == 0);
    CHECK(closed_form_seconds(algorithm, 1, 100, {}).value_or(0) == 0);
    CHECK((closed_form_seconds(algorithm, 8, 0, {}).value_or(0) > 0) == (is_barrier && !test::needs_nodes(algorithm)));
  }
}

}  // namespace
}  // namespace col

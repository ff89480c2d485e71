// Closed formulas against the simulator, and everything against the lower bounds.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

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

TEST_CASE("cost: a problem has the formula of its ranks on one node", "[plan][cost]") {
  for (const Algorithm& algorithm : algorithms()) {
    const auto problem = test::everyday_problem(algorithm, 6, 64);
    if (!problem) continue;
    INFO(test::describe(algorithm, problem->spec()));
    const std::size_t bytes = test::everyday_bytes(algorithm.collective, 6, 64);
    CHECK(closed_form_seconds(algorithm, *problem, {}) == closed_form_seconds(algorithm, 6, bytes, {}));
  }
}

TEST_CASE("cost: ranks on several nodes have no formula", "[plan][cost]") {
  PlanProblem::Spec spec = test::everyday_spec(Collective::allreduce, 4, 64);
  for (const int last : {0, 1}) {
    spec.node_of_rank = {0, 0, 0, last};
    CHECK(closed_form_seconds(test::algorithm(Collective::allreduce, "ring"), PlanProblem(spec), {}).has_value() ==
          (last == 0));
  }
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

// Plans to JSON and back.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <col/plan.hpp>

#include "cases.hpp"
#include "support/catch.hpp"

namespace col {
namespace {

using nlohmann::json;

// Where the plans of a file differ from those that were written; nothing when they do not.
std::optional<std::string> difference(const PlanFile& file, const PlanProblem& problem, const PlanOfRank& written) {
  for (int rank = 0; rank < problem.size(); ++rank) {
    const PlanRequest request = problem.request(rank);
    if (const auto why = file.refuse(request)) return fmt::format("rank {} is refused: {}", rank, *why);
    const Plan was = written(rank);
    const Plan is = file.build(request);
    if (was.rounds != is.rounds || was.scratch != is.scratch || was.wide != is.wide)
      return fmt::format("rank {}: {} rounds, {} scratch, {} wide became {}, {}, {}", rank, was.rounds, was.scratch,
                         was.wide, is.rounds, is.scratch, is.wide);
    Round before, after;
    for (std::size_t index = 0; index < was.rounds; ++index) {
      was.round(index, before);
      is.round(index, after);
      if (!std::ranges::equal(before.steps(), after.steps()))
        return fmt::format("rank {}, round {}: the steps differ", rank, index);
    }
  }
  return std::nullopt;
}

PlanProblem::Spec allreduce_of(int size, std::size_t count) {
  return {.collective = Collective::allreduce, .size = size, .count = count};
}

std::string ring_json(const PlanProblem& problem, std::string_view name = "ring") {
  return plan_to_json(problem, plans_of(test::algorithm(Collective::allreduce, "ring"), problem), name);
}

// All problems that one algorithm's plans are written for.
std::vector<PlanProblem::Spec> problems_of(const Algorithm& algorithm, std::mt19937& random) {
  std::vector<PlanProblem::Spec> specs;
  for (const int size : {1, 2, 3, 4, 7, 8}) {
    for (const test::Mode mode : test::modes_of(algorithm.collective)) {
      const CollectiveRow& row = row_of(algorithm.collective);
      const std::vector<std::size_t> counts = {0, 5, 64};
      std::vector<std::size_t> shapes(test::kBlockShapes);
      std::iota(shapes.begin(), shapes.end(), std::size_t{0});
      for (const std::size_t what : row.has_counts() ? shapes : counts)
        specs.push_back(test::spec_of(algorithm.collective, size, row.rooted ? size / 2 : 0, what, mode, random));
    }
  }
  return specs;
}

}  // namespace

TEST_CASE("json: what was written is read again, step by step, for every algorithm", "[plan]") {
  const std::uint32_t seed = test::random_seed();
  std::mt19937 random(seed);
  INFO("seed " << seed);
  std::size_t compared = 0;
  for (const Algorithm& algorithm : algorithms()) {
    for (const PlanProblem::Spec& spec : problems_of(algorithm, random)) {
      const PlanProblem problem(spec);
      if (algorithm.refuse(problem.request(0))) continue;
      INFO(test::describe(algorithm, spec));
      const PlanOfRank plans = plans_of(algorithm, problem);
      const PlanFile file = PlanFile::parse(plan_to_json(problem, plans, algorithm.name));
      const auto differs = difference(file, problem, plans);
      if (differs) FAIL(*differs);
      ++compared;
    }
  }
  INFO(compared << " plans compared");
  CHECK(compared >= algorithms().size());
}

TEST_CASE("json: a file says what its plan is for", "[plan]") {
  const PlanProblem problem({.collective = Collective::gatherv, .size = 3, .root = 2, .counts = {4, 0, 2}});
  const json file = json::parse(
      plan_to_json(problem, plans_of(test::algorithm(Collective::gatherv, "linear"), problem), "my \"gatherv\"\n"));
  CHECK(file["version"] == 1);
  CHECK(file["name"] == "my \"gatherv\"\n");
  CHECK(file["collective"] == "gatherv");
  CHECK(file["ranks"] == 3);
  CHECK(file["root"] == 2);
  CHECK(file["unit"] == "elements");
  CHECK(file["counts"] == json::array({4, 0, 2}));
  CHECK(file["plans"].size() == 3);
}

TEST_CASE("json: only a collective with a root has one in its file", "[plan]") {
  const json file = json::parse(ring_json(PlanProblem(allreduce_of(2, 4))));
  CHECK_FALSE(file.contains("root"));
  CHECK(file["count"] == 4);
}

TEST_CASE("json: the counts of an alltoallv are one row per sender", "[plan]") {
  const PlanProblem problem({.collective = Collective::alltoallv, .size = 2, .counts = {1, 2, 3, 4}});
  const json file =
      json::parse(plan_to_json(problem, plans_of(test::algorithm(Collective::alltoallv, "linear"), problem), "all"));
  CHECK(file["counts"] == json::array({{1, 2}, {3, 4}}));
}

TEST_CASE("json: temporary buffers of different sizes are listed by rank", "[plan]") {
  const PlanProblem problem(allreduce_of(2, 1));
  const PlanOfRank plans = [](int rank) {
    return Plan{.scratch = rank == 0 ? 3u : 5u, .wide = 7, .generate = [](std::size_t, Round&) {}};
  };
  const json file = json::parse(plan_to_json(problem, plans, "empty"));
  CHECK(file["scratch"] == json::array({3, 5}));
  CHECK(file["wide"] == 7);
}

TEST_CASE("json: a signal is a message of an empty slice", "[plan]") {
  const PlanProblem problem({.collective = Collective::barrier, .size = 2});
  const PlanOfRank plans = [](int rank) {
    return Plan{.rounds = 1, .generate = [rank](std::size_t, Round& round) {
                  round.signal(1 - rank);
                  round.await(1 - rank);
                }};
  };
  const std::string text = plan_to_json(problem, plans, "barrier");
  CHECK(json::parse(text)["plans"][0][0] == json::parse(R"([{"send": [], "to": 1}, {"recv": [], "from": 1}])"));
  CHECK(difference(PlanFile::parse(text), problem, plans) == std::nullopt);
}

TEST_CASE("json: a name that is not UTF-8 does not make the file unreadable", "[plan]") {
  const PlanProblem problem(allreduce_of(2, 4));
  CHECK(PlanFile::parse(ring_json(problem, "\xff")).name() == "\xef\xbf\xbd");
}

}  // namespace col

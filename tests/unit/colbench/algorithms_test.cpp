// Ranking of algorithms, and what the library would choose.
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <col/group.hpp>

#include "colbench/commands/candidates.hpp"
#include "colbench/commands/choice.hpp"
#include "colbench/commands/comparison.hpp"
#include "colbench/commands/plan_source.hpp"
#include "colbench/commands/ranking.hpp"
#include "common/command_line.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"

using namespace col;
using namespace col::colbench;
using Catch::Approx;

namespace {

// Twenty launches around `median`, spread by `spread` of it.
Cell measured(const std::string& algorithm, double median, double spread, std::optional<double> model) {
  Cell cell;
  cell.spec = {.algorithm = algorithm, .bytes = 1 << 20, .ranks = 4};
  cell.backend = "shm";
  cell.algorithm = algorithm;
  cell.model_seconds = model;
  for (int i = 0; i < 20; ++i)
    cell.launches.push_back({.launch = i, .seconds = {median * (1 + spread * (i - 9.5) / 10)}});
  return cell;
}

std::vector<const Cell*> pointers(const std::vector<Cell>& cells) {
  std::vector<const Cell*> all;
  for (const Cell& cell : cells) all.push_back(&cell);
  return all;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("rank correlation: same order, opposite order, ties", "[colbench]") {
  const std::vector<double> up = {1, 2, 3, 4}, down = {9, 7, 5, 3}, tied = {1, 2, 2, 4}, flat = {5, 5, 5, 5};
  CHECK(rank_correlation(up, up).value() == Approx(1));
  CHECK(rank_correlation(up, down).value() == Approx(-1));
  // Ranks 1, 2.5, 2.5, 4 against 1 to 4: 4.5 / sqrt(5 * 4.5).
  CHECK(rank_correlation(up, tied).value() == Approx(0.948683298));
  CHECK_FALSE(rank_correlation(up, flat).has_value());
  CHECK_FALSE(rank_correlation(std::vector<double>{1}, std::vector<double>{1}).has_value());
}

TEST_CASE("ranking: by measured median, beside the model's order; what does not count is left out", "[colbench]") {
  std::vector<Cell> cells = {measured("mst", 3e-3, 0.01, 2e-3), measured("ring", 1e-3, 0.01, 3e-3),
                             measured("bde", 1.001e-3, 0.01, std::nullopt), measured("direct", 2e-3, 0.01, 1e-3)};
  cells.push_back(measured("one_shot", 1e-6, 0.01, 1e-3));
  cells.back().invalid = "wrong data";
  cells.emplace_back();
  cells.back().note = "needs an even number of ranks";
  const auto ranked = ranked_algorithms(pointers(cells));
  REQUIRE(ranked.size() == 4);
  CHECK(algorithm_of(*ranked[0].cell) == "ring");
  CHECK(algorithm_of(*ranked[1].cell) == "bde");
  CHECK(algorithm_of(*ranked[3].cell) == "mst");
  CHECK(ranked[0].model_rank == 3);
  CHECK_FALSE(ranked[1].model_rank.has_value());
  CHECK(ranked[2].model_rank == 1);
  CHECK_FALSE(ranked[0].apart_from_next);
  CHECK(ranked[1].apart_from_next);
}

TEST_CASE("comparison: one table for each kind of cell, with the choice marked and the ties named", "[colbench]") {
  std::vector<Cell> cells = {measured("mst", 3e-3, 0.01, 2e-3), measured("ring", 1e-3, 0.01, 1e-3),
                             measured("direct", 1.001e-3, 0.01, 1.5e-3)};
  cells.push_back(cells[0]);
  cells.back().spec.bytes = 1 << 10;
  const auto groups = compared_cells(cells);
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].size() == 3);

  Chooser::Result choice;
  choice.algorithm.name = "direct";
  choice.reason = "rule 1";
  const std::string text = algorithm_comparison(groups[0], [&](const Cell&) { return choice; }, {});
  CHECK(has(text, "2*  direct"));
  CHECK(has(text, "would choose direct: rule 1"));
  CHECK(has(text, "rank correlation 1.00 (Spearman) over 3"));
  CHECK(has(text, "not told apart by their intervals: ring and direct\n"));
  // mst on 4 ranks: 2 rounds to the root and 2 back; rank 0 sends the whole vector to two others.
  CHECK(has(text, "524,288"));
  CHECK(has(text, "contiguous"));
}

TEST_CASE("candidates: algorithms with parameters that the built-in table may run", "[colbench]") {
  CellSpec cell{.backend = "gloo", .algorithm = "all", .bytes = 1 << 20, .ranks = 2};
  const auto variants = tuned_variants(SelectionTable::built_in(), cell);
  REQUIRE_FALSE(variants.empty());
  for (const std::string& variant : variants) CHECK(has(variant, ":"));
  CHECK(with_tuned_variants({cell}).size() == 1 + variants.size());
  cell.algorithm = "ring";
  CHECK(with_tuned_variants({cell}).size() == 1);
}

TEST_CASE("plans of names: unknown ones get the nearest, parameters must be the algorithm's", "[colbench]") {
  CHECK(PlanSource::list(Collective::allreduce, {"ring", "all", "ring"}).size() ==
        PlanSource::list(Collective::allreduce, {"all"}).size());
  CHECK_THROWS_WITH(PlanSource::find(Collective::allreduce, "rign"), Catch::Matchers::Contains("did you mean 'ring'"));
  CHECK_THROWS_AS(PlanSource::find(Collective::allreduce, "ring:radix=4"), tools::UsageError);
  CHECK_THROWS_AS(PlanSource::find(Collective::allreduce, "ring:"), tools::UsageError);
  CHECK_THROWS_AS(parse_collective("pingpong"), tools::UsageError);
}

TEST_CASE("choice: without a group, the answer is that of a group", "[colbench]") {
  constexpr int kRanks = 3;
  std::vector<std::string> backends;
  for (const std::string& name : backend_names()) {
    if ((name == "shm" || name == "gloo") && !find_backend(name)->unavailable_reason()) backends.push_back(name);
  }
  REQUIRE_FALSE(backends.empty());
  for (const std::string& backend : backends) {
    std::vector<std::string> said;  // by rank 0 of a real group
    std::vector<CellSpec> cells;
    for (int c = 0; c <= static_cast<int>(Collective::barrier); ++c) {
      for (const std::size_t bytes : {std::size_t{96}, std::size_t{24'000}, std::size_t{3} << 20}) {
        for (const DType dtype : {DType::float32, DType::bfloat16}) {
          cells.push_back({.operation = static_cast<Operation>(c), .dtype = dtype, .bytes = bytes, .ranks = kRanks});
        }
      }
    }
    const auto outcomes = test::run_threads(kRanks, [&](int rank, Context& context) {
      Group group = context.init_group(
          {.name = "explain", .rank = rank, .world_size = kRanks, .backend = backend_from_string(backend)});
      for (const CellSpec& cell : cells) {
        const std::string text = group.explain(collective_of(cell.operation).value(), cell.bytes, cell.dtype);
        if (rank == 0) said.push_back(text);
      }
      context.finalize();
    });
    INFO(test::show(outcomes));
    REQUIRE(test::all_good(outcomes));
    const Chooser chooser(backend, {});
    for (std::size_t i = 0; i < cells.size(); ++i) CHECK(chooser.choose(cells[i]).text() == said[i]);
  }
}

TEST_CASE("choice: what the environment asks for is taken, or is an error that says why", "[colbench]") {
  const CellSpec cell{.operation = Operation::allgather, .bytes = 3 << 20, .ranks = 3};
  const auto with = [](const std::string& overrides) {
    return ChoiceSettings{.overrides = parse_overrides(overrides), .table = std::nullopt};
  };
  const Chooser ring(backend_of("auto"), with("allgather:ring"));
  CHECK(ring.choose(cell).text() == "ring: asked for by COL_ALGORITHM");
  CHECK(ring.choose(cell).table == nullptr);
  const Chooser odd(backend_of("auto"), with("allgather:neighbor"));
  CHECK_THROWS_WITH(odd.choose(cell), Catch::Matchers::Contains("cannot be used: neighbor"));

  ChoiceSettings settings;
  settings.table = SelectionTable::parse(R"({"version": 1, "rules": [
    {"collective": "allgather", "algorithm": "neighbor"}, {"collective": "allgather", "algorithm": "direct"}]})",
                                         "my.json");
  const Chooser tabled(backend_of("auto"), settings);
  CHECK(has(tabled.choose(cell).text(), "direct: rule 2 of my.json: allgather: direct (rule 1: neighbor: "));
  settings.numerics = ChoiceSettings::Numerics::deterministic;
  const Chooser deterministic(backend_of("auto"), settings);
  const CellSpec reduction{.bytes = 1 << 20, .ranks = 4};
  const auto chosen = deterministic.choose(reduction);
  CHECK(find_algorithm(Collective::allreduce, chosen.algorithm.name)->order == FoldOrder::rank_order);
  CHECK_THROWS_AS(Chooser("carrier_pigeon", {}), tools::UsageError);
}

// Ranking of algorithms, what the library would choose, and colbench draw as far as files.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <col/group.hpp>
#include <col/plan.hpp>

#include "colbench/commands/command.hpp"
#include "colbench/plans/choice.hpp"
#include "colbench/plans/comparison.hpp"
#include "colbench/plans/plan_source.hpp"
#include "common/command_line.hpp"
#include "common/report.hpp"
#include "fixtures.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"
#include "support/temp_dir.hpp"

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

}  // namespace

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
  const auto ranking = [&](tools::Style style) {
    return report_text({.tables = {algorithm_ranking(
                            groups[0], [&](const Cell&) { return choice; }, false)}},
                       style);
  };
  const std::string text = ranking({});
  CHECK(has(text, "2*  direct"));
  CHECK(has(text, "would choose direct: rule 1"));
  CHECK(has(text, "rank correlation 1.00 (Spearman) over 3"));
  CHECK(has(text, "not told apart by their intervals: ring and direct\n"));
  // mst on 4 ranks: 2 rounds to the root and 2 back; rank 0 sends the whole vector to two others.
  CHECK(has(text, "524,288"));
  CHECK(has(text, "contiguous"));
  // On a terminal of 80 columns, what ranks them stays.
  const std::string narrow = ranking({.columns = 80});
  for (const char* word : {"algorithm", "median", "x model", "no room here for messages"}) CHECK(has(narrow, word));
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
        for (const bool deterministic : {false, true}) {
          const std::string text = group.explain(collective_of(cell.operation).value(), cell.bytes, cell.dtype,
                                                 {.deterministic = deterministic});
          // Without what the group's own connections add.
          if (rank == 0)
            said.push_back(text.substr(
                0, std::min({text.find("; through slots"), text.find("; one copy by"), text.find("; no data")})));
        }
      }
      context.finalize();
    });
    INFO(test::show(outcomes));
    REQUIRE(test::all_good(outcomes));
    const Chooser chooser(backend, {}), deterministic(backend, {.numerics = ChoiceSettings::Numerics::deterministic});
    for (std::size_t i = 0; i < cells.size(); ++i) {
      CHECK(chooser.choose(cells[i]).text() == said[2 * i]);
      CHECK(deterministic.choose(cells[i]).text() == said[2 * i + 1]);
    }
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
  const std::string chosen = deterministic.choose(reduction).algorithm.name;
  const Algorithm* const plan = find_algorithm(Collective::allreduce, chosen);
  bool keeps_order = plan != nullptr && plan->order == FoldOrder::rank_order;
  for (const NativeEntry& own : deterministic.natives())
    keeps_order = keeps_order || (own.collective == Collective::allreduce && own.name == chosen && own.rank_order);
  CHECK(keeps_order);
  CHECK_THROWS_AS(Chooser("carrier_pigeon", {}), tools::UsageError);
}

namespace {

int draw(const std::vector<std::string>& arguments) {
  return run_draw({.arguments = arguments, .screen = {}, .measure = {}});
}

}  // namespace

TEST_CASE("draw: mst on 8 ranks has its 14 messages in the picture", "[colbench]") {
  const test::TempDir directory;
  const std::string path = directory.path() + "/mst.svg";
  CHECK(draw({"--algorithm", "mst", "-n", "8", "-o", path}) == 0);
  const std::string svg = content_of(path);
  CHECK(svg.starts_with("<svg"));
  CHECK(has(svg, "allreduce by mst"));
  CHECK(occurrences(svg, "→") == 14);
}

TEST_CASE("draw: a plan as JSON is read back, and drawn as the plan that it is", "[colbench]") {
  const test::TempDir directory;
  const std::string json = directory.path() + "/tree.json";
  const std::string text = directory.path() + "/tree.txt", again = directory.path() + "/again.txt";
  const std::vector<std::string> what = {"broadcast", "--algorithm", "knomial:radix=3", "-n", "8",
                                         "--root",    "2",           "--count",         "5",  "-o"};
  const auto to = [&](const std::string& path) {
    std::vector<std::string> arguments = what;
    arguments.push_back(path);
    return draw(arguments);
  };
  CHECK(to(json) == 0);
  CHECK(to(text) == 0);
  const PlanFile file = PlanFile::load(json);
  CHECK(file.collective() == Collective::broadcast);
  CHECK(file.ranks() == 8);
  CHECK(draw({"--algorithm", "file:" + json, "--root", "2", "--count", "5", "-o", again}) == 0);
  CHECK(content_of(again) == content_of(text));
}

TEST_CASE("draw: a plan that is wrong is drawn, and said to be wrong", "[colbench]") {
  const test::TempDir directory;
  const std::string json = directory.path() + "/wrong.json";
  // Rank 1 never gets the sum.
  std::ofstream(json) << R"({"version": 1, "name": "half", "collective": "allreduce", "ranks": 2, "unit": "chunks",
    "plans": [[[{"recv": ["scratch", 0, 1], "from": 1},
                {"reduce": [["input", 0, 1], ["scratch", 0, 1]], "into": ["wide", 0, 1]},
                {"convert": ["wide", 0, 1], "into": ["output", 0, 1]}]],
              [[{"send": ["input", 0, 1], "to": 0}]]]})";
  const std::string svg = directory.path() + "/wrong.svg";
  CHECK(draw({"--algorithm", "file:" + json, "-o", svg}) == 1);
  CHECK(occurrences(content_of(svg), "→") == 1);
}

TEST_CASE("draw: a wrong command line is one sentence", "[colbench]") {
  CHECK(has(complaint_of(run_draw, {}), "--algorithm"));
  CHECK(has(complaint_of(run_draw, {"--algorithm", "mts"}), "did you mean 'mst'"));
  CHECK(has(complaint_of(run_draw, {"--algorithm", "mst", "-n", "65"}), "64"));
  CHECK(has(complaint_of(run_draw, {"--algorithm", "mst", "-n", "0"}), "-n takes a whole number"));
  CHECK(has(complaint_of(run_draw, {"--algorithm", "mst", "--output", "a.pdf"}), "--output a.pdf"));
  CHECK(has(complaint_of(run_draw, {"--algorithm", "mst", "-n", "9"}), "draw 8 or fewer"));
  CHECK(has(complaint_of(run_draw, {"--algorithm", "mst", "-o", "mst.pdf"}), ".svg"));
  CHECK(has(complaint_of(run_draw, {"--algorithm", "mst", "--root", "1"}), "no root"));
  CHECK(has(complaint_of(run_draw, {"--algorithm", "mst", "--size", "1K", "--count", "4"}), "one of them"));
  CHECK(has(complaint_of(run_draw, {"--algorithm", "ring:radix=4"}), "radix"));
  CHECK(has(complaint_of(run_draw, {"allgather", "--algorithm", "neighbor", "-n", "7"}), "even"));
  CHECK(has(complaint_of(run_draw, {"brodcast", "--algorithm", "mst"}), "broadcast"));
}

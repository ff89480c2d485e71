// From measurements to a selection table.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "colbench/commands/command.hpp"
#include "colbench/plans/tune_report.hpp"
#include "colbench/plans/tuning.hpp"
#include "common/command_line.hpp"
#include "fixtures.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

using namespace col;
using namespace col::colbench;
using Catch::Approx;

namespace {

// Medians with an interval of 2 % to both sides.
TunedPoint point(std::size_t bytes, const std::map<std::string, double>& medians) {
  TunedPoint made{.bytes = bytes, .entries = {}};
  for (const auto& [name, median] : medians) made.entries.push_back({name, median, 0.98 * median, 1.02 * median});
  return made;
}

// Seconds of an algorithm whose samples scatter by a little.
using Seconds = std::function<double(const std::string& algorithm, const CellSpec& cell)>;

// "all" is bde and ring.
Measure measure_by(const Seconds& seconds, int& calls) {
  return [&calls, seconds](const Method& method, std::span<const CellSpec> cells) {
    ++calls;
    Results results;
    results.run.host = "host";
    results.run.cpu = "CPU";
    results.run.cpus = 2;
    results.run.started = "2026-01-31T10:00:00Z";
    results.run.ranks = method.ranks;
    for (const CellSpec& spec : cells) {
      for (const std::string name : {"bde", "ring"}) {
        if (spec.algorithm != "all" && spec.algorithm != name) continue;
        Cell cell;
        cell.spec = spec;
        cell.spec.algorithm = cell.algorithm = name;
        cell.backend = "shm";
        for (int i = 0; i < 40; ++i)
          cell.launches.push_back({.launch = i, .seconds = {seconds(name, spec) * (1 + 0.001 * (i % 10))}});
        results.cells.push_back(cell);
      }
    }
    return results;
  };
}

// ring is the better one above 10,000 bytes.
double crossing_seconds(const std::string& algorithm, const CellSpec& cell) {
  const auto bytes = static_cast<double>(cell.bytes);
  return algorithm == "bde" ? 1e-6 + bytes * 1e-9 : 6e-6 + bytes * 0.5e-9;
}

}  // namespace

TEST_CASE("tuning: as few ranges as the intervals justify", "[colbench]") {
  // At 4K the two are not told apart; at 1M "tree" is the fastest, but not by more than its interval.
  const std::vector<TunedPoint> points = {
      point(1 << 10, {{"bde", 1.0}, {"ring", 2.0}, {"tree", 3.0}}),
      point(4 << 10, {{"bde", 2.01}, {"ring", 2.0}, {"tree", 4.0}}),
      point(64 << 10, {{"bde", 8.0}, {"ring", 4.0}, {"tree", 5.0}}),
      point(1 << 20, {{"bde", 90.0}, {"ring", 50.0}, {"tree", 49.0}}),
  };
  const auto ranges = tuned_ranges(points);
  REQUIRE(ranges.size() == 2);
  CHECK(ranges[0].algorithm == "bde");
  CHECK(ranges[0].last == 1);
  CHECK(ranges[1].algorithm == "ring");
  CHECK(ranges[1].last == 3);

  const Advantage first = advantage_of(points, ranges[0]);
  CHECK(first.next == "ring");
  CHECK(first.told_apart);
  CHECK(first.factor == Approx(std::sqrt(2.0 / 1.0 * 2.0 / 2.01)));
  CHECK(one_range(points).algorithm == "ring");
}

TEST_CASE("tuning: equal algorithms make one range; none is measured alone", "[colbench]") {
  const std::vector<TunedPoint> same = {point(1, {{"a", 1.0}, {"b", 1.01}}), point(2, {{"a", 2.02}, {"b", 2.0}})};
  const auto ranges = tuned_ranges(same);
  REQUIRE(ranges.size() == 1);
  CHECK_FALSE(advantage_of(same, ranges[0]).told_apart);
  const std::vector<TunedPoint> alone = {point(1, {{"a", 1.0}})};
  CHECK(advantage_of(alone, tuned_ranges(alone)[0]).next.empty());
  CHECK(tuned_ranges({}).empty());
}

TEST_CASE("tuning: an algorithm that was not measured at a size gets no range over it", "[colbench]") {
  const std::vector<TunedPoint> points = {point(1, {{"a", 1.0}, {"b", 2.0}}), point(2, {{"b", 2.0}}),
                                          point(3, {{"a", 1.0}, {"b", 2.0}})};
  CHECK(tuned_ranges(points).size() == 3);
  CHECK(one_range(points).algorithm == "b");
}

TEST_CASE("tuning: a crossover is closed in on from both sides", "[colbench]") {
  Crossover crossover{1000, 64'000, "bde", "ring"};
  CHECK(crossover.middle() == 8000);
  CHECK_FALSE(crossover.is_known(1.25));
  crossover.learn(point(8000, {{"bde", 1.0}, {"ring", 2.0}}));
  CHECK(crossover.below == 8000);
  crossover.learn(point(16'000, {{"bde", 2.0}, {"ring", 1.0}}));
  CHECK(crossover.above == 16'000);
  crossover.learn(point(9000, {{"bde", 2.0}, {"tree", 1.0}}));  // says nothing about the two
  crossover.learn(point(1 << 20, {{"bde", 1.0}, {"ring", 2.0}}));
  CHECK(crossover.below == 8000);
  CHECK(crossover.above == 16'000);
  CHECK_FALSE(Crossover{7, 8, "bde", "ring"}.middle().has_value());
}

TEST_CASE("tune: the crossover of two known curves is found", "[colbench]") {
  int calls = 0;
  std::vector<CellSpec> cells;
  for (const std::size_t bytes : {std::size_t{64}, std::size_t{4096}, std::size_t{1} << 18})
    cells.push_back({.algorithm = "all", .bytes = bytes, .ranks = 4});
  const TuneResult tuned = tune(measure_by(crossing_seconds, calls), Method{.ranks = 4}, cells, 1.25, 10);
  REQUIRE(tuned.series.size() == 1);
  const TunedSeries& series = tuned.series.front();
  REQUIRE(series.crossovers.size() == 1);
  CHECK(series.crossovers[0].below > 8000);
  CHECK(series.crossovers[0].above < 12'500);
  CHECK(series.crossovers[0].is_known(1.25));
  CHECK(calls > 1);
  CHECK(calls <= 11);

  const auto rules = rules_of(series);
  REQUIRE(rules.size() == 2);
  CHECK(rules[0].rule.algorithm.name == "bde");
  CHECK(rules[0].rule.max_bytes == series.crossovers[0].below);
  CHECK(has(rules[0].advantage, "times as fast as ring"));
  CHECK(has(series_text(series), "allreduce, 4 ranks, shm\n  up to "));

  const auto changes = changes_of(series, [](const CellSpec&) { return std::optional<std::string>("bde"); });
  REQUIRE(changes.size() == 1);
  CHECK(has(changes[0], "allreduce, 4 ranks, shm, 256K: ring in place of bde, "));
}

TEST_CASE("tune: where the backend's own algorithm is best, plans are ranked for the rest", "[colbench]") {
  // By the curves above, but "shared" is the fastest up to 100,000 bytes.
  const Measure measure = [](const Method& method, std::span<const CellSpec> cells) {
    int calls = 0;
    const auto seconds = [](const std::string& algorithm, const CellSpec& cell) {
      return cell.op == ReduceOp::max ? (cell.bytes > 100'000 ? 1 : 1e-7) : crossing_seconds(algorithm, cell);
    };
    Results results = measure_by(seconds, calls)(method, cells);
    for (CellSpec spec : cells) {
      if (spec.algorithm != "all" && spec.algorithm != "shared") continue;
      spec.algorithm = "bde";
      spec.op = ReduceOp::max;  // asks for the time of "shared"
      Cell cell = measure_by(seconds, calls)(method, std::span(&spec, 1)).cells.front();
      cell.spec.op = ReduceOp::sum;
      cell.spec.algorithm = cell.algorithm = "shared";
      results.cells.push_back(cell);
    }
    return results;
  };
  const test::TempDir directory;
  const std::string path = directory / "my.json";
  CHECK(run_tune({.arguments = {"allreduce", "-n", "4", "--sizes", "64:4M:x8", "-o", path},
                  .screen = {},
                  .measure = measure}) == 0);
  const SelectionTable table = SelectionTable::load(path);
  const auto chosen = [&](std::size_t bytes, bool shared_serves) {
    const auto why_not = [&](const AlgorithmSpec& spec) {
      return spec.name == "shared" && !shared_serves ? std::optional<std::string>("it does not serve") : std::nullopt;
    };
    return choose(table, {.collective = Collective::allreduce, .ranks = 4, .bytes = bytes, .backend = "shm"}, why_not)
        ->algorithm.name;
  };
  CHECK(chosen(64, true) == "shared");
  CHECK(chosen(64, false) == "bde");
  CHECK(chosen(32'768, true) == "shared");
  CHECK(chosen(32'768, false) == "ring");
  CHECK(chosen(std::size_t{1} << 22, true) == "ring");

  // Nothing more where plans are the best anyway.
  int calls = 0;
  const std::vector<CellSpec> cells = {{.algorithm = "all", .bytes = 64, .ranks = 4}};
  CHECK(tune(measure_by(crossing_seconds, calls), Method{.ranks = 4}, cells, 1.25, 3).series.size() == 1);
}

TEST_CASE("tune: what the built-in table takes stays where nothing is certainly better", "[colbench]") {
  // Of bde and ring, the other one than the built-in table takes is faster by less than the scatter, or by more.
  const SelectionQuery query{.collective = Collective::allreduce, .ranks = 4, .bytes = 64, .backend = "shm"};
  const auto of_two = [](const AlgorithmSpec& spec) {
    return spec.text() == "bde" || spec.text() == "ring" ? std::nullopt : std::optional<std::string>("not measured");
  };
  const std::string kept = choose(SelectionTable::built_in(), query, of_two)->algorithm.name;
  const auto chosen = [&](double advantage) {
    int calls = 0;
    const Seconds seconds = [&](const std::string& algorithm, const CellSpec&) {
      return algorithm == kept ? 1e-5 : 1e-5 / advantage;
    };
    const std::vector<CellSpec> cells = {{.algorithm = "all", .bytes = 64, .ranks = 4}};
    const TuneResult tuned = tune(measure_by(seconds, calls), Method{.ranks = 4}, cells, 1.25, 0);
    return tuned.series.front().ranges.front().algorithm;
  };
  CHECK(chosen(1.0001) == kept);
  CHECK(chosen(1.2) != kept);
}

TEST_CASE("tune: a run that ends early ends it, without a series", "[colbench]") {
  const Measure measure = [](const Method&, std::span<const CellSpec>) {
    Results results;
    results.ended_early = "a rank died";
    results.exit_code = 5;
    return results;
  };
  const std::vector<CellSpec> cells = {{.algorithm = "all", .bytes = 64, .ranks = 2}};
  const TuneResult tuned = tune(measure, Method{}, cells, 1.25, 4);
  CHECK(tuned.series.empty());
  CHECK(tuned.exit_code == 5);
  CHECK(run_tune({.arguments = {"allreduce", "-n", "2"}, .screen = {}, .measure = measure}) == 5);
}

TEST_CASE("tune: what is left out is said; warnings that differ in numbers only, once", "[colbench]") {
  int calls = 0;
  const Measure good = measure_by(crossing_seconds, calls);
  const Measure measure = [&](const Method& method, std::span<const CellSpec> cells) {
    Results results = good(method, cells);
    results.warnings = {fmt::format("other processes used {} % of the cores", 10 + calls)};
    if (calls == 1) results.cells[0].invalid = "wrong data";
    results.exit_code = calls == 1 ? 1 : 0;
    return results;
  };
  std::vector<CellSpec> cells;
  for (const std::size_t bytes : {std::size_t{64}, std::size_t{4096}, std::size_t{1} << 18})
    cells.push_back({.algorithm = "all", .bytes = bytes, .ranks = 4});
  const TuneResult tuned = tune(measure, Method{.ranks = 4}, cells, 1.25, 3);
  CHECK(calls > 1);
  CHECK(tuned.warnings.size() == 1);
  REQUIRE(tuned.left_out.size() == 1);
  CHECK(has(tuned.left_out[0], "allreduce 64 float32 sum, bde"));
  CHECK(has(tuned.left_out[0], ": wrong data"));
  CHECK(tuned.exit_code == 1);
}

TEST_CASE("tune: invalid cells and those without samples justify nothing", "[colbench]") {
  int calls = 0;
  const std::vector<CellSpec> cells = {{.algorithm = "all", .bytes = 64, .ranks = 4}};
  Results results = measure_by(crossing_seconds, calls)(Method{.ranks = 4}, cells);
  results.cells[0].invalid = "wrong data";
  results.cells[1].launches.clear();
  CHECK(series_of(results).empty());
}

TEST_CASE("selection text: what it writes can be read, and neighbours share their rules", "[colbench]") {
  std::vector<TunedRule> rules;
  for (const int ranks : {3, 4, 8}) {
    for (const std::size_t most : {std::size_t{64} << 10, std::numeric_limits<std::size_t>::max()}) {
      TunedRule tuned;
      tuned.rule = {.collective = Collective::allreduce, .min_ranks = ranks, .max_ranks = ranks, .max_bytes = most};
      tuned.rule.backend = "shm";
      tuned.rule.algorithm = AlgorithmSpec::parse(most == 65'536 ? "bde" : "ring_pipelined:segment=64K");
      tuned.advantage = "fast";
      rules.push_back(tuned);
    }
  }
  const auto merged = merged_rules(rules);
  REQUIRE(merged.size() == 4);
  CHECK(merged[0].rule.min_ranks == 3);
  CHECK(merged[0].rule.max_ranks == 4);
  CHECK(has(merged[0].advantage, "on 4 ranks fast"));
  CHECK(merged[2].rule.min_ranks == 8);

  const std::string text = selection_text(merged, {"a \"machine\"\n", "2026-01-31", "colbench tune"});
  const SelectionTable table = SelectionTable::parse(text, "test");
  REQUIRE(table.rules().size() == 4);
  for (std::size_t i = 0; i < merged.size(); ++i) CHECK(table.rules()[i].text() == merged[i].rule.text());
  CHECK(has(table.evidence(), "rule 1: fast"));
  CHECK(has(table.evidence(), "date: 2026-01-31"));

  const std::string of_third = evidence_of_rule(table.evidence(), 3);
  CHECK(has(of_third, "Measured: rule 3: fast; date: "));
  CHECK_FALSE(has(of_third, "rule 2"));
  CHECK(has(of_third, "a \"machine\""));
  CHECK(evidence_of_rule("machine: mine; date: today", 1) == "machine: mine; date: today");
}

TEST_CASE("tune: writes a table that chooses what was the fastest", "[colbench]") {
  const test::TempDir directory;
  const std::string path = directory / "my.json";
  int calls = 0;
  const Invocation invocation{.arguments = {"allreduce", "-n", "2,3", "--sizes", "64:256K:x8", "-o", path},
                              .screen = {},
                              .measure = measure_by(crossing_seconds, calls)};
  CHECK(run_tune(invocation) == 0);
  const SelectionTable table = SelectionTable::load(path);
  const auto any = [](const AlgorithmSpec&) { return std::optional<std::string>(); };
  for (const int ranks : {2, 3}) {
    const auto chosen = [&](std::size_t bytes) {
      return choose(table, {.collective = Collective::allreduce, .ranks = ranks, .bytes = bytes, .backend = "shm"}, any)
          ->algorithm.name;
    };
    CHECK(chosen(8) == "bde");
    CHECK(chosen(8000) == "bde");
    CHECK(chosen(12'500) == "ring");
    CHECK(chosen(std::size_t{1} << 30) == "ring");
  }
  CHECK_FALSE(choose(table, {.collective = Collective::allreduce, .ranks = 4, .bytes = 8, .backend = "shm"}, any));
  CHECK(has(table.evidence(), "command: colbench tune allreduce -n "));
}

TEST_CASE("tune: a wrong command line is one sentence, before anything is measured", "[colbench]") {
  CHECK(has(complaint_of(run_tune, {"-n", "2,x"}), "2,4,7-8"));
  CHECK(has(complaint_of(run_tune, {"-n", "1"}), "from 2"));
  CHECK(has(complaint_of(run_tune, {"-n"}), "needs a value"));
  CHECK(has(complaint_of(run_tune, {"pingpong", "-n", "2"}), "no algorithms"));
  CHECK(has(complaint_of(run_tune, {"allreduce", "-n", "2", "--algo", "auto"}), "--algo all"));
  CHECK(has(complaint_of(run_tune, {"allreduce", "-n", "4", "--groups", "mod:2"}), "--groups"));
  CHECK(has(complaint_of(run_tune, {"allreduce", "-n", "2", "--place", "both"}), "--place"));
}

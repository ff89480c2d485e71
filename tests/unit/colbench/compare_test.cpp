#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "colbench/compare/compare.hpp"
#include "colbench/compare/noise.hpp"
#include "support/catch.hpp"

using namespace col::colbench;
using Catch::Approx;
using Catch::Matchers::Contains;

namespace {

using Random = std::mt19937_64;

double uniform(Random& random) {
  return static_cast<double>((random() >> 11) + 1) * 0x1p-53;
}

double normal(Random& random) {
  constexpr double kTurn = 6.283185307179586;
  const double radius = std::sqrt(-2 * std::log(uniform(random)));
  return radius * std::cos(kTurn * uniform(random));
}

// Medians of launches as a small shared machine has them: they scatter by `scatter`, and a share of `doubled` takes
// twice as long.
struct NoiseModel {
  double scatter = 0.05;
  double doubled = 0.08;
  // Bursts of noise: a launch begins one, or ends it, with these probabilities; in a burst all takes so much longer.
  double begin = 0, end = 1, burst = 1.5;
};

// Launches in the order of time.
std::vector<double> launches_of(const NoiseModel& model, std::size_t count, Random& random) {
  std::vector<double> launches;
  bool is_burst = uniform(random) < model.begin / (model.begin + model.end);
  for (std::size_t i = 0; i < count; ++i) {
    const double tail = uniform(random) < model.doubled ? 2 : 1;
    launches.push_back(1e-3 * std::exp(model.scatter * normal(random)) * tail * (is_burst ? model.burst : 1));
    is_burst = uniform(random) < (is_burst ? 1 - model.end : model.begin);
  }
  return launches;
}

struct Rates {
  double false_alarms = 0;  // any verdict where there is no difference
  double power = 0;         // "slower" where B is 15 % slower
};

constexpr int kComparisons = 400;
constexpr std::size_t kLaunches = 20;
constexpr std::size_t kLaunchesOfRuns = 40;  // what a run comes to where launches scatter so much

// By one comparison of one row each time.
Rates rates_of(const NoiseModel& model, bool interleaved, std::uint64_t seed) {
  Random random(seed);
  Rule rule{.interleaved = interleaved, .resamples = 200};
  int false_alarms = 0, found = 0;
  const auto verdict = [&](const std::vector<double>& a, const std::vector<double>& b) {
    const Effect effect = effect_of(a, b, rule);
    return verdict_of(effect, effect.p, rule);
  };
  for (int i = 0; i < kComparisons; ++i) {
    rule.seed = static_cast<std::uint64_t>(i);
    std::vector<double> a, b;
    if (interleaved) {
      const std::vector<double> both = launches_of(model, 2 * kLaunches, random);
      for (std::size_t j = 0; j < both.size(); ++j) (j % 2 == 0 ? a : b).push_back(both[j]);
    } else {
      a = launches_of(model, kLaunchesOfRuns, random);
      b = launches_of(model, kLaunchesOfRuns, random);
    }
    if (verdict(a, b) != Change::undecided) ++false_alarms;
    for (double& seconds : b) seconds *= 1.15;
    if (verdict(a, b) == Change::slower) ++found;
  }
  return {static_cast<double>(false_alarms) / kComparisons, static_cast<double>(found) / kComparisons};
}

CellSpec spec_of(std::size_t bytes) {
  return {.backend = "shm", .algorithm = "ring", .bytes = bytes};
}

Cell cell_of(std::size_t bytes, const std::vector<double>& medians) {
  Cell cell{.spec = spec_of(bytes), .backend = "shm", .algorithm = "ring"};
  int number = 0;
  for (const double seconds : medians) {
    cell.launches.push_back({.launch = number++, .seconds = {seconds, 0.9 * seconds, 5 * seconds}});
  }
  return cell;
}

// `count` values from `first`, by equal steps: the smallest, the largest, the second smallest, …, so that they do not
// seem to drift.
std::vector<double> ladder(std::size_t count, double first, double step) {
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) {
    values.push_back(first + step * static_cast<double>(i % 2 == 0 ? i / 2 : count - 1 - i / 2));
  }
  return values;
}

std::vector<double> ladder(std::size_t count, double first) {
  return ladder(count, first, 0.01 * first);
}

Results run_of(std::vector<Cell> cells) {
  Results results;
  results.run = {.host = "n1", .cpu = "cpu", .cpus = 2, .ranks = 2, .launches = 20, .sync = "window"};
  results.cells = std::move(cells);
  return results;
}

}  // namespace

TEST_CASE("compare: the same against itself is an alarm in at most 5 %, and 15 % more is found in 90 %", "[colbench]") {
  // Launches that do not depend on each other.
  for (const NoiseModel& model : {NoiseModel{.scatter = 0.02}, NoiseModel{}, NoiseModel{.doubled = 0.1},
                                  NoiseModel{.scatter = 0.08, .doubled = 0.05}}) {
    for (const std::uint64_t seed : {1u, 2u}) {
      const Rates rates = rates_of(model, false, seed);
      INFO(fmt::format("scatter {}, doubled {}, seed {}", model.scatter, model.doubled, seed));
      INFO(fmt::format("false alarms {:.3f}, power {:.3f}", rates.false_alarms, rates.power));
      CHECK(rates.false_alarms <= 0.05);
      CHECK(rates.power >= 0.90);
    }
  }
}

TEST_CASE("compare: interleaved, bursts of noise that both sides share change neither", "[colbench]") {
  for (const NoiseModel& model :
       {NoiseModel{}, NoiseModel{.begin = 0.05, .end = 0.2}, NoiseModel{.begin = 0.05, .end = 0.1},
        NoiseModel{.begin = 0.05, .end = 0.2, .burst = 2}}) {
    for (const std::uint64_t seed : {1u, 2u}) {
      const Rates rates = rates_of(model, true, seed);
      INFO(fmt::format("bursts {} {} x{}, seed {}", model.begin, model.end, model.burst, seed));
      INFO(fmt::format("false alarms {:.3f}, power {:.3f}", rates.false_alarms, rates.power));
      CHECK(rates.false_alarms <= 0.05);
      CHECK(rates.power >= 0.90);
    }
  }
}

TEST_CASE("compare: of many rows that do not differ, any is called different in at most 5 % of comparisons",
          "[colbench]") {
  Random random(3);
  int alarms = 0;
  constexpr int kRuns = 200;
  for (int i = 0; i < kRuns; ++i) {
    std::vector<Cell> a, b;
    for (std::size_t bytes = 1; bytes <= 10; ++bytes) {
      a.push_back(cell_of(bytes, launches_of({}, kLaunches, random)));
      b.push_back(cell_of(bytes, launches_of({}, kLaunches, random)));
    }
    const Comparison comparison = compare(run_of(std::move(a)), run_of(std::move(b)), {.resamples = 300});
    if (comparison.count(Change::undecided) < 10) ++alarms;
  }
  CHECK(alarms <= kRuns * 5 / 100);
}

TEST_CASE("compare: launches that drift are said to, and make p larger", "[colbench]") {
  Random random(5);
  std::vector<double> a, b;
  for (int i = 0; i < 20; ++i) {
    const double drift = i / 5 % 2 == 0 ? 1 : 1.3;
    a.push_back(drift * (1 + 0.02 * uniform(random)));
    b.push_back(1.03 * drift * (1 + 0.02 * uniform(random)));
  }
  const Effect effect = effect_of(a, b, {});
  CHECK(effect.dependence > 1);
  std::shuffle(a.begin(), a.end(), random);
  std::shuffle(b.begin(), b.end(), random);
  const Effect shuffled = effect_of(a, b, {});
  CHECK(shuffled.dependence == 1);
  CHECK(effect.p > shuffled.p);
  CHECK(effect.ratio == shuffled.ratio);
}

TEST_CASE("compare: rows are matched by what they measure, and what has no match is named", "[colbench]") {
  Cell other = cell_of(2048, ladder(20, 1));
  other.spec.cadence = Cadence::stream;
  const Results a = run_of({cell_of(1024, ladder(20, 1)), cell_of(2048, ladder(20, 1))});
  const Results b = run_of({other, cell_of(1024, ladder(20, 2)), cell_of(4096, ladder(20, 1))});
  const Comparison comparison = compare(a, b, {});
  REQUIRE(comparison.cells.size() == 1);
  const ComparedCell& cell = comparison.cells.front();
  CHECK(cell.spec == spec_of(1024));
  CHECK(cell.launches_a == 20);
  CHECK(cell.effect.median_a == Approx(1.095));
  CHECK(cell.effect.median_b == Approx(2.19));
  CHECK(cell.effect.ratio == Approx(2));
  CHECK(cell.verdict == Change::slower);
  CHECK(compare(b, a, {}).cells.front().verdict == Change::faster);
  REQUIRE(comparison.left_out.size() == 3);
  CHECK(comparison.left_out[0].spec == spec_of(2048));
  CHECK(comparison.left_out[0].why == "only in A");
  CHECK(comparison.left_out[1].spec == other.spec);
  CHECK(comparison.left_out[1].why == "only in B");
  CHECK(comparison.left_out[2].why == "only in B");
}

TEST_CASE("compare: what is invalid, wrong or not measured is never compared", "[colbench]") {
  Cell invalid = cell_of(1, ladder(20, 1)), wrong = cell_of(2, ladder(20, 1)), missing = cell_of(3, {}),
       nothing = cell_of(4, ladder(20, 0));
  invalid.invalid = "below the bound";
  wrong.check = {.wrong = 3, .first = "rank 1, element 7: 3, not 12"};
  missing.note = "no such algorithm";
  const Results bad = run_of({invalid, wrong, missing, nothing});
  const Results good = run_of(
      {cell_of(1, ladder(20, 2)), cell_of(2, ladder(20, 2)), cell_of(3, ladder(20, 2)), cell_of(4, ladder(20, 2))});
  const Comparison comparison = compare(good, bad, {});
  CHECK(comparison.cells.empty());
  REQUIRE(comparison.left_out.size() == 4);
  CHECK(comparison.left_out[0].why == "invalid in B: below the bound");
  CHECK(comparison.left_out[1].why == "wrong data in B: rank 1, element 7: 3, not 12");
  CHECK(comparison.left_out[2].why == "not measured in B: no such algorithm");
  CHECK(comparison.left_out[3].why == "a launch of B took no time at all");
  CHECK(compare(bad, good, {}).left_out[0].why == "invalid in A: below the bound");
}

TEST_CASE("compare: with too few launches it says how many it takes", "[colbench]") {
  const auto verdict_with = [](std::size_t launches, std::size_t rows, Rule rule) {
    std::vector<Cell> a, b;
    for (std::size_t bytes = 1; bytes <= rows; ++bytes) {
      a.push_back(cell_of(bytes, ladder(launches, 1)));
      b.push_back(cell_of(bytes, ladder(launches, 2)));
    }
    return compare(run_of(std::move(a)), run_of(std::move(b)), rule).cells.front();
  };
  CHECK(verdict_with(3, 1, {}).verdict == Change::undecided);
  CHECK(verdict_with(3, 1, {}).why == "too few launches: at least 9 a side");
  CHECK(std::isinf(verdict_with(8, 1, {}).effect.interval.high));
  CHECK(verdict_with(8, 1, {}).why == "too few launches: at least 9 a side");
  CHECK(verdict_with(9, 1, {}).verdict == Change::slower);
  CHECK(verdict_with(5, 1, {.interleaved = true}).why == "too few launches: at least 6 a side");
  CHECK(verdict_with(6, 1, {.interleaved = true}).verdict == Change::slower);
  CHECK(fewest_launches(1, {}) == 9);
  CHECK(fewest_launches(100'000, {}) == 13);
  CHECK(fewest_launches(20, {.interleaved = true}) == 10);
}

TEST_CASE("compare: a difference below the least that counts is none, however sure", "[colbench]") {
  const Results run_a = run_of({cell_of(1, ladder(20, 1, 0.0001))}),
                run_b = run_of({cell_of(1, ladder(20, 1.02, 0.0001))});
  const ComparedCell cell = compare(run_a, run_b, {}).cells.front();
  CHECK(cell.p < 0.001);
  CHECK(cell.verdict == Change::undecided);
  CHECK(cell.why == "a difference, but not surely one of 3%");
  CHECK(compare(run_a, run_b, {.min_effect = 0.01}).cells.front().verdict == Change::slower);
}

TEST_CASE("compare: a run without launches enough has no interval, and the table says how many it takes",
          "[colbench]") {
  const Results one = run_of({cell_of(1024, {1e-3})});
  const std::string table = comparison_table(compare(one, run_of({cell_of(1024, ladder(20, 2e-3))}), {}), {});
  CHECK_THAT(table, Contains("# undecided, 1 row: too few launches: at least 9 a side\n"));
  CHECK_THAT(table, !Contains(" to "));
  const std::string json = comparison_json(compare(one, one, {}), "a", "b");
  CHECK_THAT(json, Contains("\"ratio_low\": null") && Contains("\"ratio_high\": null"));
}

TEST_CASE("compare: what fixed work beside the ranks shows too is no difference of the rows", "[colbench]") {
  Results a = run_of({cell_of(1, ladder(20, 1, 0.001))}), b = run_of({cell_of(1, ladder(20, 1.15, 0.001))});
  a.probes = std::vector<Probe>(21, {5e-5, 3e-4});
  b.probes = a.probes;
  CHECK(compare(a, b, {}).cells.front().verdict == Change::slower);
  CHECK(compare(a, b, {}).warnings.empty());
  for (Probe& probe : b.probes) probe.copy_seconds *= 1.08;
  CHECK(compare(a, b, {}).cells.front().verdict == Change::slower);
  CHECK_THAT(compare(a, b, {}).warnings.front(), Contains("8.0% more time"));
  for (Probe& probe : b.probes) probe.spin_seconds *= 1.2;
  for (const auto& [x, y] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    const Comparison comparison = compare(*x, *y, {});
    CHECK(comparison.cells.front().verdict == Change::undecided);
    CHECK(comparison.cells.front().why == "a difference, but not surely one of 20%");
    CHECK(comparison.rule.min_effect == Approx(0.2));
  }
  b.probes.clear();  // a file from before there were any
  CHECK(compare(a, b, {}).cells.front().verdict == Change::slower);
}

TEST_CASE("compare: a regression is a slower row, by more than is allowed", "[colbench]") {
  const ComparedCell cell =
      compare(run_of({cell_of(1, ladder(20, 1))}), run_of({cell_of(1, ladder(20, 1.5))}), {}).cells.front();
  CHECK(is_regression(cell, 0.4));
  CHECK_FALSE(is_regression(cell, 0.6));
  ComparedCell unsure = cell;
  unsure.verdict = Change::undecided;
  CHECK_FALSE(is_regression(unsure, 0.1));
}

TEST_CASE("compare: what else differs is said in a line each", "[colbench]") {
  const Results a = run_of({cell_of(1, ladder(20, 1))});
  CHECK(compare(a, a, {}).warnings.empty());
  Results b = a;
  b.run.host = "n2";
  b.run.cpu = "";
  b.run.sync = "barrier";
  b.run.launches = 5;
  b.run.environment = {{"COL_ALGORITHM", "ring"}};
  b.cells[0].check.mode = "off";
  b.cells[0].algorithm = "bde";
  b.ended_early = "rank 1 died";
  const std::vector<std::string> warnings = compare(a, b, {}).warnings;
  CHECK(warnings ==
        std::vector<std::string>{"different host: A n1, B n2", "different CPU: A cpu, B unknown",
                                 "different start of samples: A window, B barrier",
                                 "different number of launches: A 20, B 5", "different check of data: A sample, B off",
                                 "different COL_ALGORITHM: A not set, B 'ring'", "B ended early: rank 1 died",
                                 "allreduce 1 float32 sum, ring over shm: A ran ring over shm, B "
                                 "ran bde over shm"});
}

TEST_CASE("compare: the table has a row for each, and every reason and warning", "[colbench]") {
  Results a = run_of({cell_of(1024, ladder(20, 1e-3)), cell_of(2048, ladder(20, 1e-3)), cell_of(1, {})});
  Results b = run_of({cell_of(1024, ladder(20, 1.5e-3)), cell_of(2048, ladder(20, 1e-3)), cell_of(1, {})});
  const Comparison comparison = compare(a, b, {});
  const std::string table = comparison_table(comparison, {});
  CHECK_THAT(table, Contains("row") && Contains("verdict") && Contains("95%"));
  CHECK_THAT(table, Contains("allreduce 1K float32 sum, ring over shm"));
  CHECK_THAT(table, Contains("1.500"));
  CHECK_THAT(table, Contains("<0.001"));
  CHECK_THAT(table, Contains("slower\n"));
  CHECK_THAT(table, Contains("undecided\n"));
  CHECK_THAT(table, Contains("# allreduce 1 float32 sum, ring over shm: not measured in A\n"));
  CHECK_THAT(table, Contains("# 2 rows compared: 0 faster, 1 slower, 1 undecided; 1 left out; a verdict needs 3% and "
                             "p <= 0.05\n"));
  const std::string json = comparison_json(comparison, "a.json", "b.json");
  CHECK_THAT(json, Contains("\"schema\": \"colbench-compare\"") && Contains("\"verdict\": \"slower\""));
  CHECK_THAT(json, Contains("\"why\": \"not measured in A\""));
}

TEST_CASE("compare: rows whose names would be equal tell what they differ in", "[colbench]") {
  CellSpec plain = spec_of(1024), ranks = plain, cache = plain;
  ranks.ranks = 4;
  cache.cache = CacheState::cold;
  const std::vector<std::string> names = row_names({plain, ranks, cache});
  CHECK_THAT(names[0], Contains(", 2 ranks, hot"));
  CHECK_THAT(names[1], Contains(", 4 ranks, hot"));
  CHECK_THAT(names[2], Contains(", 2 ranks, cold"));
  CHECK(row_names({plain}) == std::vector<std::string>{text_of(plain)});
}

TEST_CASE("split: every other launch, and pairs have the same number", "[colbench]") {
  Results run = run_of({cell_of(1, {10, 11, 12, 13, 14})});
  run.run.launches = 5;
  const auto [a, b] = split_alternating(run);
  CHECK(launch_medians(a.cells.front()) == std::vector<double>{10, 12, 14});
  CHECK(launch_medians(b.cells.front()) == std::vector<double>{11, 13});
  CHECK(a.cells.front().launches.back().launch == 2);
  CHECK(b.cells.front().launches.back().launch == 1);
  CHECK(a.run.launches == 3);
  CHECK(b.run.launches == 2);
  const Comparison comparison = compare(a, b, {.interleaved = true});
  REQUIRE(comparison.cells.size() == 1);
  CHECK(comparison.cells.front().launches_a == 2);  // the last of A has no other beside it
}

TEST_CASE("noise: what is detectable grows with the noise, and is what the rule then finds", "[colbench]") {
  Random random(9);
  const std::vector<double> quiet_a = launches_of({.scatter = 0.01, .doubled = 0}, kLaunches, random),
                            quiet_b = launches_of({.scatter = 0.01, .doubled = 0}, kLaunches, random),
                            loud_a = launches_of({.scatter = 0.1}, kLaunches, random),
                            loud_b = launches_of({.scatter = 0.1}, kLaunches, random);
  for (const bool interleaved : {false, true}) {
    INFO(interleaved);
    const Rule rule{.interleaved = interleaved};
    const auto quiet = smallest_detectable(quiet_a, quiet_b, kLaunches, rule);
    const auto loud = smallest_detectable(loud_a, loud_b, kLaunches, rule);
    REQUIRE(quiet);
    REQUIRE(loud);
    CHECK(*quiet >= 0.03);  // the least effect that counts
    CHECK(*quiet <= 0.06);
    CHECK(*loud > *quiet);
    CHECK(*loud < 0.6);
    CHECK(smallest_detectable(loud_a, loud_b, kLaunches, rule) == loud);
    const auto fewer = smallest_detectable(loud_a, loud_b, 8, rule);
    CHECK((!fewer || *fewer > *loud));
    CHECK_FALSE(smallest_detectable(loud_a, loud_b, 3, rule));  // no verdict can come out
  }
}

TEST_CASE("noise: a machine's floor is stated for each row, and a false alarm is called one", "[colbench]") {
  Random random(15);
  const std::vector<double> steady = launches_of({}, 2 * kLaunches, random);
  std::vector<double> uneven;  // every other launch is slower: nothing but a false alarm, as far as noise can know
  for (std::size_t i = 0; i < 2 * kLaunches; ++i) uneven.push_back(steady[i] * (i % 2 == 0 ? 1 : 1.5));
  Results run = run_of({cell_of(1024, steady), cell_of(2048, uneven)});
  run.run.launches = 2 * kLaunches;
  const Noise noise = noise_of(run, 0.03);
  CHECK(noise.launches == kLaunches);
  REQUIRE(noise.floors.size() == 2);
  CHECK_FALSE(noise.floors[0].is_false_alarm());
  CHECK(noise.floors[1].is_false_alarm());
  CHECK(noise.floors[0].scatter > 0.02);
  CHECK(noise.floors[0].scatter < 0.15);
  CHECK(noise.floors[0].highest > 0.5);  // the doubled ones
  CHECK(noise.floors[0].lowest < 0);
  CHECK(noise.floors[0].lowest > -0.3);
  REQUIRE(noise.floors[0].interleaved);
  CHECK(*noise.floors[0].interleaved < 0.15);
  const std::string table = noise_table(noise, {});
  CHECK_THAT(table, Contains("A against A") && Contains("false alarm\n") && Contains("undecided\n"));
  CHECK_THAT(table, Contains("comparisons of 20 launches a side"));
  CHECK_THAT(table, Contains("# the same against itself: 1 false alarm in 2 rows\n"));
}

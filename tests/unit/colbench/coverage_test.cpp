// How often what colbench says of a median is true, on synthetic launches: their samples lie close together, they
// themselves scatter, and the machine drifts.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <fmt/format.h>

#include "colbench/compare/compare.hpp"
#include "colbench/launching.hpp"
#include "colbench/stats/sample.hpp"
#include "support/catch.hpp"

using namespace col::colbench;

namespace {

constexpr std::uint64_t kSeed = 20261123;
constexpr int kDraws = 2000;
constexpr double kTruth = 1e-3;

// Logarithms of the medians of launches: normal, with that standard deviation, of whose square the part `drift` is
// shared by neighbours: correlated by `memory` from one launch to the next. `modes`: a part of the launches that take
// twice as long, as where ranks happen to share a core.
struct Model {
  const char* name;
  double scatter, drift, memory, modes;
};
constexpr Model kAlike = {"launches that are alike", 0.003, 0, 0, 0};
constexpr Model kSteady = {"a launch effect alone", 0.02, 0, 0, 0};
constexpr Model kLoud = {"a large launch effect", 0.08, 0, 0, 0};
constexpr Model kModes = {"a mode of doubled times", 0.02, 0, 0, 0.2};
constexpr Model kDrift = {"a drift over twenty launches", 0.02, 0.2, 0.95, 0};
constexpr Model kShort = {"a drift over five launches", 0.02, 0.3, 0.8, 0};

class Synthetic {
 public:
  Synthetic(const Model& model, std::mt19937_64& random) : model_(model), random_(random), drift_(normal()) {}

  double next_median() {
    drift_ = model_.memory * drift_ + std::sqrt(1 - model_.memory * model_.memory) * normal();
    const double own = std::sqrt(1 - model_.drift) * normal(), shared = std::sqrt(model_.drift) * drift_;
    const bool is_doubled = static_cast<double>(random_() >> 11) * 0x1p-53 < model_.modes;
    return kTruth * std::exp(model_.scatter * (own + shared)) * (is_doubled ? 2 : 1);
  }
  // Samples of one launch: they differ by far less than launches do, which made them look sure of it.
  LaunchSamples next(int number) {
    const double median = next_median();
    LaunchSamples launch{.launch = number};
    for (int i = -4; i <= 4; ++i) launch.seconds.push_back(median * (1 + 0.001 * i));
    return launch;
  }

 private:
  double normal() { return distribution_(random_); }
  Model model_;
  std::mt19937_64& random_;
  std::normal_distribution<double> distribution_;
  double drift_;
};

Probe no_probe() {
  return {};
}

// A run as colbench makes it, until it has enough launches.
Cell run_of(const Model& model, std::mt19937_64& random) {
  Synthetic machine(model, random);
  const CellSpec spec{.bytes = 1024};
  Results all;
  run_launches(
      all, {.min_iterations = 1, .calibrate = false}, std::span(&spec, 1),
      [&](const col::colbench::Order& order) {
        Results one;
        one.cells.push_back({.spec = spec, .launches = {machine.next(order.launch)}});
        return one;
      },
      &no_probe);
  return all.cells.front();
}

struct Found {
  double covered = 0, disjoint = 0, pooled_covered = 0, launches = 0;
};

Found found_with(const Model& model) {
  std::mt19937_64 random(kSeed);
  // Where a fifth is doubled, the median of all is the quantile 0.5 / 0.8 of the rest: 0.3186 deviations up.
  const double truth = model.modes == 0 ? kTruth : kTruth * std::exp(model.scatter * 0.3186);
  Found found;
  CellStatistics last;
  for (int i = 0; i < kDraws; ++i) {
    const Cell cell = run_of(model, random);
    const CellStatistics statistics = statistics_of(cell);
    std::vector<double> pooled = all_seconds(cell);
    std::sort(pooled.begin(), pooled.end());
    const Interval of_pooled = median_interval(pooled);
    found.covered += statistics.low <= truth && truth <= statistics.high;
    found.pooled_covered += of_pooled.low <= truth && truth <= of_pooled.high;
    found.launches += static_cast<double>(cell.launches.size());
    if (i % 2 == 1) found.disjoint += statistics.high < last.low || last.high < statistics.low;
    last = statistics;
  }
  return {found.covered / kDraws, found.disjoint / (kDraws / 2), found.pooled_covered / kDraws,
          found.launches / kDraws};
}

}  // namespace

TEST_CASE("coverage: the 95 % interval holds the true median of the launches, also where the machine drifts",
          "[colbench][rest]") {
  fmt::print("seed {}, {} draws each\n", kSeed, kDraws);
  for (const Model& model : {kAlike, kSteady, kLoud, kModes, kDrift, kShort}) {
    const Found found = found_with(model);
    const std::string text = fmt::format(
        "{}: covered {:.1f} %, disjoint {:.1f} % of pairs, {:.1f} launches; pooled samples covered {:.1f} %",
        model.name, 100 * found.covered, 100 * found.disjoint, found.launches, 100 * found.pooled_covered);
    fmt::print("{}\n", text);
    INFO(text);
    CHECK(found.covered >= (model.drift > 0 ? 0.90 : 0.95));
    CHECK(found.disjoint <= 0.10);
    CHECK(found.pooled_covered < 0.80);  // what was said of samples as if they were independent
    CHECK(found.launches >= 10);
    CHECK(found.launches <= kMostLaunches);
  }
}

TEST_CASE("coverage: so few launches as give an interval at all hold the median too", "[colbench]") {
  for (const std::size_t launches : {6u, 8u, 12u}) {
    for (const Model& model : {kSteady, kDrift}) {
      std::mt19937_64 random(kSeed);
      int covered = 0;
      for (int i = 0; i < kDraws; ++i) {
        Synthetic machine(model, random);
        std::vector<double> medians;
        while (medians.size() < launches) medians.push_back(machine.next_median());
        std::sort(medians.begin(), medians.end());
        const Interval interval = launch_interval(medians);
        covered += interval.low <= kTruth && kTruth <= interval.high;
      }
      INFO(fmt::format("{} launches, {}, seed {}: {} of {}", launches, model.name, kSeed, covered, kDraws));
      CHECK(covered >= kDraws * (model.drift > 0 ? 87 : 95) / 100);
    }
  }
}

TEST_CASE("coverage: the same against itself is undecided in 19 of 20 comparisons of drifting runs, and 15 % is found",
          "[colbench][rest]") {
  for (const Model& model : {kSteady, kModes, kDrift, kShort}) {
    std::mt19937_64 random(kSeed);
    int undecided = 0, found = 0;
    for (int i = 0; i < kDraws; ++i) {
      Synthetic before(model, random), after(model, random);
      std::vector<double> a, b;
      while (a.size() < (model.modes > 0 ? 40 : 20))
        a.push_back(before.next_median()), b.push_back(after.next_median());
      const Rule rule;
      const Effect same = effect_of(a, b, rule);
      undecided += verdict_of(same, same.p, rule) == Change::undecided;
      for (double& seconds : b) seconds *= 1.15;
      const Effect slower = effect_of(a, b, rule);
      found += verdict_of(slower, slower.p, rule) == Change::slower;
    }
    INFO(fmt::format("{}, seed {}: undecided {} of {}, found {}", model.name, kSeed, undecided, kDraws, found));
    CHECK(undecided >= kDraws * 95 / 100);
    CHECK(found >= kDraws * 90 / 100);
  }
}

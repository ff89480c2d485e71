#include "colbench/compare/noise.hpp"

#include <algorithm>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "colbench/compare/compare.hpp"
#include "colbench/report/values.hpp"
#include "colbench/stats/sample.hpp"
#include "common/report.hpp"
#include "common/text.hpp"

namespace col::colbench {
namespace {

constexpr std::size_t kStretch = 4;
constexpr int kSimulations = 200;
constexpr int kNeeded = 180;  // 90 %
constexpr int kResamples = 200;
constexpr double kStep = 0.005;
constexpr int kMostSteps = 200;

using Random = std::mt19937_64;
struct DrawnSides {
  std::vector<double> a, b;
};

// `count` places in `size` of them, in stretches; behind the last place comes the first.
std::vector<std::size_t> draw_places(std::size_t size, std::size_t count, Random& random) {
  std::vector<std::size_t> places;
  while (places.size() < count) {
    const std::size_t first = random() % size;
    for (std::size_t i = 0; i < kStretch && places.size() < count; ++i) places.push_back((first + i) % size);
  }
  return places;
}

DrawnSides draw_pairs(std::span<const double> a, std::span<const double> b, std::size_t launches, Random& random) {
  DrawnSides sides;
  for (const std::size_t place : draw_places(a.size(), launches, random)) {
    const bool exchange = random() % 2 == 1;
    sides.a.push_back(exchange ? b[place] : a[place]);
    sides.b.push_back(exchange ? a[place] : b[place]);
  }
  return sides;
}

std::vector<double> draw_side(std::span<const double> a, std::span<const double> b, std::size_t launches,
                              Random& random) {
  std::vector<double> side;
  for (const std::size_t place : draw_places(2 * a.size(), launches, random)) {
    side.push_back(place % 2 == 0 ? a[place / 2] : b[place / 2]);
  }
  return side;
}

bool is_detected(DrawnSides sides, double slowdown, const Rule& rule) {
  for (double& seconds : sides.b) seconds *= 1 + slowdown;
  const Effect effect = effect_of(sides.a, sides.b, rule);
  return verdict_of(effect, effect.p, rule) == Change::slower;
}

const Cell* find(const Results& results, const CellSpec& spec) {
  const auto found =
      std::find_if(results.cells.begin(), results.cells.end(), [&](const Cell& cell) { return cell.spec == spec; });
  return found == results.cells.end() ? nullptr : &*found;
}

std::string detectable_text(const std::optional<double>& slowdown) {
  return slowdown ? fmt::format("{:.1f}%", 100 * *slowdown) : ">100%";
}

}  // namespace

std::optional<double> smallest_detectable(std::span<const double> a, std::span<const double> b, std::size_t launches,
                                          Rule rule) {
  if (a.empty() || launches < fewest_launches(1, rule)) return std::nullopt;
  rule.resamples = kResamples;
  Random random(rule.seed);
  // The same draws for every slowdown, so that power grows with it.
  std::vector<DrawnSides> draws;
  for (int i = 0; i < kSimulations; ++i) {
    if (rule.interleaved) {
      draws.push_back(draw_pairs(a, b, launches, random));
    } else {
      std::vector<double> side = draw_side(a, b, launches, random);
      draws.push_back({std::move(side), draw_side(a, b, launches, random)});
    }
  }
  const auto is_enough = [&](int steps) {
    return std::count_if(draws.begin(), draws.end(),
                         [&](const DrawnSides& sides) { return is_detected(sides, steps * kStep, rule); }) >= kNeeded;
  };
  int below = 0, enough = kMostSteps;
  if (!is_enough(enough)) return std::nullopt;
  while (enough - below > 1) {
    const int middle = (below + enough) / 2;
    (is_enough(middle) ? enough : below) = middle;
  }
  return enough * kStep;
}

Noise noise_of(const Results& results, double min_effect) {
  auto [a, b] = split_alternating(results);
  a.ended_early = b.ended_early = "";  // one run, whose end is no difference between the two
  Noise noise{.launches = b.run.launches, .comparison = compare(a, b, {.min_effect = min_effect, .interleaved = true})};
  for (const ComparedCell& cell : noise.comparison.cells) {
    Floor floor{.cell = cell};
    const auto [of_a, of_b] = paired_medians(*find(a, cell.spec), *find(b, cell.spec));
    std::vector<double> all = of_a;
    all.insert(all.end(), of_b.begin(), of_b.end());
    std::sort(all.begin(), all.end());
    const double middle = quantile(all, 0.5);
    if (middle > 0) {
      floor.scatter = (quantile(all, 0.75) - quantile(all, 0.25)) / middle;
      floor.lowest = all.front() / middle - 1;
      floor.highest = all.back() / middle - 1;
    }
    Rule rule = noise.comparison.rule;
    floor.interleaved = smallest_detectable(of_a, of_b, of_a.size(), rule);
    rule.interleaved = false;
    floor.apart = smallest_detectable(of_a, of_b, of_a.size(), rule);
    noise.floors.push_back(std::move(floor));
  }
  return noise;
}

std::string noise_table(const Noise& noise, tools::Style style) {
  std::vector<CellSpec> specs;
  for (const Floor& floor : noise.floors) specs.push_back(floor.cell.spec);
  const std::vector<std::string> names = row_names(specs);
  tools::Table table{.columns = {{"row"},
                                 {"median", true},
                                 {"scatter", true, 1},
                                 {"range", true, 5},
                                 {"B/A", true, 3},
                                 {"95%", true, 4},
                                 {"in turn", true},
                                 {"apart", true, 2},
                                 {"A against A"}}};
  std::size_t alarms = 0;
  for (std::size_t i = 0; i < noise.floors.size(); ++i) {
    const Floor& floor = noise.floors[i];
    const Effect& effect = floor.cell.effect;
    if (floor.is_false_alarm()) ++alarms;
    table.rows.push_back({{names[i]},
                          {time_text(effect.median_a)},
                          {fmt::format("{:.1f}%", 100 * floor.scatter)},
                          {fmt::format("{:+.0f}% {:+.0f}%", 100 * floor.lowest, 100 * floor.highest)},
                          {fmt::format("{:.3f}", effect.ratio)},
                          {interval_text(effect.interval)},
                          {detectable_text(floor.interleaved)},
                          {detectable_text(floor.apart)},
                          floor.is_false_alarm() ? tools::TextCell{"false alarm", tools::Tone::bad}
                                                 : tools::TextCell{"undecided", tools::Tone::good}});
  }
  tools::Part part{.tables = {std::move(table)}};
  part.notes = {
      {"scatter, range: the middle half, and all, of the medians of launches, over the median of these"},
      {fmt::format(
          "in turn: the smallest slowdown that is found in 9 of 10 comparisons of {} launches a side, which are "
          "measured in turn",
          noise.launches)},
      {"apart: the same when the sides are two runs (with the machine as it was in this one)"}};
  for (const Floor& floor : noise.floors) {
    if (!floor.cell.why.empty()) part.notes.push_back({floor.cell.why});
  }
  for (const LeftOutCell& cell : noise.comparison.left_out)
    part.notes.push_back({fmt::format("{}: {}", text_of(cell.spec), cell.why)});
  for (const std::string& warning : noise.comparison.warnings) part.notes.push_back({warning});
  part.notes.push_back({fmt::format("the same against itself: {} in {}", tools::counted(alarms, "false alarm"),
                                    tools::counted(noise.floors.size(), "row"))});
  return report_text(part, style);
}

}  // namespace col::colbench

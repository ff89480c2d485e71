#include "colbench/compare/noise.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "colbench/compare/detectable.hpp"
#include "colbench/compare/report.hpp"
#include "colbench/compare/split.hpp"
#include "colbench/report/values.hpp"
#include "colbench/stats/quantile.hpp"
#include "common/table.hpp"
#include "common/text.hpp"

namespace col::colbench {
namespace {

const Cell* find(const Results& results, const CellSpec& spec) {
  const auto found =
      std::find_if(results.cells.begin(), results.cells.end(), [&](const Cell& cell) { return cell.spec == spec; });
  return found == results.cells.end() ? nullptr : &*found;
}

// The medians of launches that both cells have, in the order of time.
std::pair<std::vector<double>, std::vector<double>> pairs_of(const Cell& a, const Cell& b) {
  std::pair<std::vector<double>, std::vector<double>> pairs;
  for (const LaunchSamples& launch : a.launches) {
    const auto other = std::find_if(b.launches.begin(), b.launches.end(),
                                    [&](const LaunchSamples& candidate) { return candidate.launch == launch.launch; });
    if (other == b.launches.end() || launch.seconds.empty() || other->seconds.empty()) continue;
    pairs.first.push_back(median(launch.seconds));
    pairs.second.push_back(median(other->seconds));
  }
  return pairs;
}

std::string detectable_text(const std::optional<double>& slowdown) {
  return slowdown ? fmt::format("{:.1f}%", 100 * *slowdown) : ">100%";
}

}  // namespace

Noise noise_of(const Results& results, double min_effect) {
  auto [a, b] = split_alternating(results);
  a.ended_early = b.ended_early = "";  // one run, whose end is no difference between the two
  Noise noise{.launches = b.run.launches, .comparison = compare(a, b, {.min_effect = min_effect, .interleaved = true})};
  for (const ComparedCell& cell : noise.comparison.cells) {
    Floor floor{.cell = cell};
    const auto [of_a, of_b] = pairs_of(*find(a, cell.spec), *find(b, cell.spec));
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
  std::vector<std::vector<tools::TextCell>> rows = {
      {{"row"}, {"median"}, {"scatter"}, {"range"}, {"B/A"}, {"95%"}, {"in turn"}, {"apart"}, {"A against A"}}};
  std::size_t alarms = 0;
  std::vector<std::string> reasons;
  for (std::size_t i = 0; i < noise.floors.size(); ++i) {
    const Floor& floor = noise.floors[i];
    const Effect& effect = floor.cell.effect;
    if (floor.is_false_alarm()) ++alarms;
    if (!floor.cell.why.empty()) reasons.push_back(floor.cell.why);
    rows.push_back({{names[i]},
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
  std::string text = noise.floors.empty() ? "" : tools::render_table(rows, style);
  text += "# scatter, range: the middle half, and all, of the medians of launches, over the median of these\n";
  text += fmt::format(
      "# in turn, apart: the smallest slowdown that is found in 9 of 10 comparisons of {} launches a side, when the\n"
      "# sides are measured in turn, and when they are two runs (with the machine as it was in this one)\n",
      noise.launches);
  for (const std::string& reason : reasons) text += fmt::format("# {}\n", reason);
  for (const LeftOutCell& cell : noise.comparison.left_out) {
    text += fmt::format("# {}: {}\n", text_of(cell.spec), tools::one_line(cell.why, !style.utf8));
  }
  for (const std::string& warning : noise.comparison.warnings) {
    text += fmt::format("# {}\n", tools::one_line(warning, !style.utf8));
  }
  return text + fmt::format("# the same against itself: {} in {}\n", tools::counted(alarms, "false alarm"),
                            tools::counted(noise.floors.size(), "row"));
}

}  // namespace col::colbench

#include "colbench/p2p/heat_map.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>

#include <fmt/format.h>

#include "colbench/report/values.hpp"
#include "common/text.hpp"

namespace col::colbench {
namespace {

constexpr double kLeastRatio = 1.2;
constexpr double kDeviations = 5;
constexpr std::size_t kLeastValues = 3;
constexpr std::size_t kMostNamed = 8;

// A value must exceed this to be slower than the rest.
struct Threshold {
  explicit Threshold(std::span<const PairTime> times) {
    std::vector<double> values;
    for (const PairTime& time : times) values.push_back(time.seconds);
    median = lower_median(values);
    for (double& value : values) value = std::abs(value - median);
    limit = std::max(median * kLeastRatio, median + kDeviations * lower_median(values));
  }
  double median = 0, limit = 0;
};

bool has(const PairTime& pair, int rank) {
  return pair.first == rank || pair.second == rank;
}

// For each rank with a pair: the lower quartile of its pairs, with the rank as `first`. A slow rank is slow in its best
// pairs too; a good rank that has slow peers is not.
std::vector<PairTime> faster_pairs(int ranks, std::span<const PairTime> pairs) {
  std::vector<PairTime> scores;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<PairTime> own;
    std::copy_if(pairs.begin(), pairs.end(), std::back_inserter(own),
                 [&](const auto& pair) { return has(pair, rank); });
    if (own.empty()) continue;
    std::sort(own.begin(), own.end(), [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
    const PairTime& quartile = own[(own.size() - 1) / 4];
    scores.push_back({rank, rank, quartile.seconds, quartile.low});
  }
  return scores;
}

constexpr std::array<double, kShades - 1> kLimits = {1.1, 1.2, 1.5, 2.0};

std::string_view mark_of(int shade, tools::Style style) {
  constexpr std::array<std::string_view, kShades> kBlocks = {" ", "░", "▒", "▓", "█"};
  constexpr std::array<std::string_view, kShades> kAscii = {" ", ".", ":", "+", "#"};
  return (style.utf8 ? kBlocks : kAscii).at(static_cast<std::size_t>(shade));
}

tools::Tone tone_of(int shade) {
  return shade == 0 ? tools::Tone::plain : shade < 3 ? tools::Tone::attention : tools::Tone::bad;
}

// One unit for all of a map, so that numbers can be compared at a glance.
struct Unit {
  std::string_view name;
  double scale;  // values in it per second, or per byte a second
};

Unit unit_of(const HeatMap& map) {
  double least = 0;
  for (const PairTime& pair : map.pairs) least = least == 0 ? pair.seconds : std::min(least, pair.seconds);
  if (map.is_latency()) {
    if (least < 1e-7) return {"ns", 1e9};
    return least < 1e-3 ? Unit{"us", 1e6} : Unit{"ms", 1e3};
  }
  const double best = least > 0 ? static_cast<double>(map.bytes) / least : 0;
  return best < 1e8 ? Unit{"MB/s", 1e-6} : Unit{"GB/s", 1e-9};
}

// Nothing of a rank with itself, and of what was not measured.
std::optional<int> shade_in(const HeatMap& map, int a, int b, double median) {
  const std::optional<double> seconds = a == b ? std::nullopt : map.seconds(a, b);
  if (!seconds || median <= 0) return std::nullopt;
  return shade_of(*seconds / median);
}

// A line for each rank, a mark for each pair.
std::string marks_text(const HeatMap& map, tools::Style style) {
  const double median = median_seconds(map);
  std::string text = title_of(map) + " (shades only: the numbers need more columns)\n";
  for (int a = 0; a < map.ranks; ++a) {
    text += fmt::format("{:>4} ", a);
    for (int b = 0; b < map.ranks; ++b) {
      const std::optional<int> shade = shade_in(map, a, b, median);
      text += shade ? tools::toned(mark_of(*shade, style), tone_of(*shade), style) : a == b ? style.hole() : "?";
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  }
  return text;
}

}  // namespace

double lower_median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::optional<PairTime> pair_time_of(const Cell& cell) {
  const CellStatistics statistics = statistics_of(cell);
  if (!cell.spec.pair || !cell.invalid.empty() || statistics.n == 0) return std::nullopt;
  const std::vector<double> medians = launch_medians(cell);
  const double low = statistics.has_interval() ? statistics.low : *std::min_element(medians.begin(), medians.end());
  return PairTime{cell.spec.pair->first, cell.spec.pair->second, statistics.median, low};
}

Outliers find_outliers(int ranks, std::span<const PairTime> pairs) {
  Outliers found;
  const std::vector<PairTime> scores = faster_pairs(ranks, pairs);
  if (scores.size() < kLeastValues || pairs.size() < kLeastValues) return found;
  found.comparable = true;
  const Threshold of_ranks(scores);
  for (const PairTime& score : scores) {
    if (score.low > of_ranks.limit)
      found.ranks.push_back({score.first, score.seconds, score.seconds / of_ranks.median});
  }
  std::vector<PairTime> rest(pairs.begin(), pairs.end());
  std::erase_if(rest, [&](const PairTime& pair) {
    return std::any_of(found.ranks.begin(), found.ranks.end(), [&](const auto& slow) { return has(pair, slow.rank); });
  });
  if (rest.empty()) return found;
  const Threshold of_pairs(rest);
  found.median = of_pairs.median;
  if (rest.size() < kLeastValues) return found;
  std::sort(rest.begin(), rest.end(),
            [](const auto& a, const auto& b) { return std::pair(a.first, a.second) < std::pair(b.first, b.second); });
  for (const PairTime& pair : rest) {
    if (pair.low > of_pairs.limit) found.pairs.push_back({pair, pair.seconds / of_pairs.median});
  }
  return found;
}

std::string outlier_text(const Outliers& outliers, const std::string& what) {
  if (!outliers.comparable) return fmt::format("{}: too few pairs to tell whether one is slower than the rest\n", what);
  std::string text;
  for (const Outliers::Rank& slow : outliers.ranks) {
    text += fmt::format("{}: rank {} is slow with everybody: even its faster pairs take {}, {:.2f} times the median\n",
                        what, slow.rank, time_text(slow.seconds), slow.ratio);
  }
  const std::size_t named = std::min(outliers.pairs.size(), kMostNamed);
  for (std::size_t i = 0; i < named; ++i) {
    const Outliers::Pair& slow = outliers.pairs[i];
    text += fmt::format("{}: ranks {} and {} are slow with each other: {}, {:.2f} times the median\n", what,
                        slow.time.first, slow.time.second, time_text(slow.time.seconds), slow.ratio);
  }
  if (named < outliers.pairs.size())
    text += fmt::format("{}: and {} more pairs are slow\n", what, outliers.pairs.size() - named);
  if (text.empty()) {
    text = fmt::format("{}: no pair and no rank is slower than the rest (beyond the median by 20 % and 5 deviations)\n",
                       what);
  }
  return text;
}

std::optional<double> HeatMap::seconds(int a, int b) const {
  const auto found = std::find_if(pairs.begin(), pairs.end(), [&](const PairTime& pair) {
    return std::minmax(pair.first, pair.second) == std::minmax(a, b);
  });
  if (found == pairs.end()) return std::nullopt;
  return found->seconds;
}

HeatMap heat_map_of(std::span<const Cell> cells, int ranks, std::size_t bytes) {
  HeatMap map{.ranks = ranks, .bytes = bytes};
  for (const Cell& cell : cells) {
    const std::optional<PairTime> time = pair_time_of(cell);
    if (time && cell.spec.bytes == bytes) map.pairs.push_back(*time);
  }
  return map;
}

int shade_of(double ratio) {
  return static_cast<int>(std::upper_bound(kLimits.begin(), kLimits.end(), ratio) - kLimits.begin());
}

std::string messages_text(std::size_t bytes) {
  return bytes < 1024 ? fmt::format("{}-byte messages", bytes) : fmt::format("{} messages", size_text(bytes));
}

std::string title_of(const HeatMap& map) {
  return fmt::format("{} of {}, in {}", map.is_latency() ? "latency" : "bandwidth", messages_text(map.bytes),
                     unit_of(map).name);
}

std::string value_text(const HeatMap& map, int a, int b) {
  const std::optional<double> seconds = map.seconds(a, b);
  if (!seconds || *seconds <= 0) return "-";
  const double scale = unit_of(map).scale;
  return three_digits(map.is_latency() ? *seconds * scale : static_cast<double>(map.bytes) / *seconds * scale);
}

double median_seconds(const HeatMap& map) {
  std::vector<double> all;
  for (const PairTime& pair : map.pairs) all.push_back(pair.seconds);
  return lower_median(std::move(all));
}

tools::Table heat_map_table(const HeatMap& map, tools::Style style) {
  const double median = median_seconds(map);
  tools::Table table{.title = title_of(map), .columns = {{"rank", true}}};
  for (int rank = 0; rank < map.ranks; ++rank) table.columns.push_back({fmt::format("{}", rank), true});
  for (int a = 0; a < map.ranks; ++a) {
    tools::TextRow& row = table.rows.emplace_back();
    row.push_back({fmt::format("{}", a)});
    for (int b = 0; b < map.ranks; ++b) {
      const int shade = shade_in(map, a, b, median).value_or(0);
      const std::string mark(shade == 0 ? "" : mark_of(shade, style));
      row.push_back({a == b ? std::string(style.hole()) : mark + value_text(map, a, b), tone_of(shade)});
    }
  }
  std::string legend = "times the median:";
  for (int shade = 1; shade < kShades; ++shade)
    legend += fmt::format(" {} over {:.1f}{}", mark_of(shade, style), kLimits.at(static_cast<std::size_t>(shade) - 1),
                          shade + 1 < kShades ? "," : "");
  table.notes = {{std::move(legend)}};
  return table;
}

std::string heat_map_text(const HeatMap& map, tools::Style style) {
  const tools::Table table = heat_map_table(map, style);
  std::size_t widest = 0;
  for (const tools::TextRow& row : table.rows) {
    for (const tools::TextCell& cell : row) widest = std::max(widest, tools::columns_of(cell.text));
  }
  constexpr std::size_t kGap = 1;
  if (table.columns.size() * (widest + kGap) <= style.columns) return report_text({.tables = {table}}, style, "");
  return marks_text(map, style) + table.notes.front().text + "\n";
}

}  // namespace col::colbench

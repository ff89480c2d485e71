#include "colbench/p2p/heat_map.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "common/text.hpp"

namespace col::colbench {
namespace {

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

std::string three_digits(double value) {
  return fmt::format("{:.{}f}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

std::string legend(tools::Style style) {
  std::string text = "time over the median:";
  for (int shade = 1; shade < kShades; ++shade) {
    text += fmt::format("  {} more than {:.1f}", tools::toned(mark_of(shade, style), tone_of(shade), style),
                        kLimits.at(static_cast<std::size_t>(shade) - 1));
  }
  return text + "\n";
}

// Right-aligned in `width` columns.
std::string padded(std::string_view text, std::size_t width) {
  const std::size_t columns = tools::columns_of(text);
  return std::string(width > columns ? width - columns : 0, ' ') + std::string(text);
}

}  // namespace

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
  if (map.pairs.empty()) return 0;
  std::vector<double> all;
  for (const PairTime& pair : map.pairs) all.push_back(pair.seconds);
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>((all.size() - 1) / 2);
  std::nth_element(all.begin(), middle, all.end());
  return *middle;
}

std::string heat_map_text(const HeatMap& map, tools::Style style, std::size_t columns) {
  std::vector<std::vector<std::string>> values(static_cast<std::size_t>(map.ranks));
  std::size_t width = std::to_string(map.ranks - 1).size();
  const std::size_t label = std::max<std::size_t>(4, width);
  for (int a = 0; a < map.ranks; ++a) {
    for (int b = 0; b < map.ranks; ++b) {
      auto& row = values[static_cast<std::size_t>(a)];
      row.push_back(a == b ? std::string(style.hole()) : value_text(map, a, b));
      width = std::max(width, tools::columns_of(row.back()));
    }
  }
  const std::size_t gap = 1, mark = 1;
  const bool numbers = label + static_cast<std::size_t>(map.ranks) * (gap + width + mark) <= columns;
  if (!numbers) width = 0;
  const double median = median_seconds(map);

  std::string text = title_of(map) + (numbers ? "\n" : " (shades only: the numbers need more columns)\n");
  text += padded("rank", label);
  for (int b = 0; b < map.ranks && numbers; ++b)
    text += padded(std::to_string(b), gap + width) + (b + 1 < map.ranks ? " " : "");
  text += "\n";
  for (int a = 0; a < map.ranks; ++a) {
    std::string line = padded(std::to_string(a), label) + (numbers ? "" : " ");
    for (int b = 0; b < map.ranks; ++b) {
      const std::optional<double> seconds = a == b ? std::nullopt : map.seconds(a, b);
      const int shade = seconds && median > 0 ? shade_of(*seconds / median) : 0;
      if (numbers) line += padded(values[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)], gap + width);
      const bool shaded = numbers || seconds;
      line += shaded   ? tools::toned(mark_of(shade, style), tone_of(shade), style)
              : a == b ? std::string(style.hole())
                       : "?";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text + legend(style);
}

}  // namespace col::colbench

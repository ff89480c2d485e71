#include "colbench/p2p/heat_map.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "colbench/report/summary.hpp"
#include "colbench/report/values.hpp"
#include "common/page.hpp"
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

std::string legend(tools::Style style) {
  std::string text = "times the median:";
  for (int shade = 1; shade < kShades; ++shade) {
    text += fmt::format("  {} over {:.1f}", tools::toned(mark_of(shade, style), tone_of(shade), style),
                        kLimits.at(static_cast<std::size_t>(shade) - 1));
  }
  return text + "\n";
}

// Right-aligned in `width` columns.
std::string padded(std::string_view text, std::size_t width) {
  const std::size_t columns = tools::columns_of(text);
  return std::string(width > columns ? width - columns : 0, ' ') + std::string(text);
}

// After what all pages have. Every shade has a contrast of at least 4.5 to the text on it.
constexpr std::string_view kStyle = R"(
:root { --s0: #ffffff; --s1: #fff3d6; --s2: #ffdfa6; --s3: #ffc29a; --s4: #ff9f9a; }
@media (prefers-color-scheme: dark) {
  :root { --s0: #14171a; --s1: #3a2e10; --s2: #54400f; --s3: #5e3417; --s4: #6a1f22; }
}
body { max-width: 80rem; }
th, td { padding: .25rem .6rem; border: 1px solid var(--line); text-align: right; }
.s0 { background: var(--s0); } .s1 { background: var(--s1); } .s2 { background: var(--s2); }
.s3 { background: var(--s3); } .s4 { background: var(--s4); }
)";

std::string map_section(const HeatMap& map) {
  const double median = median_seconds(map);
  std::string text = fmt::format(
      "<h3>{}</h3>\n<div class=\"wide\"><table>\n<caption>A row and a column for each rank. The darker, the slower: "
      "more than 1.1, 1.2, 1.5 and 2 times the median of all pairs.</caption>\n<thead><tr><th scope=\"col\">rank</th>",
      tools::markup(title_of(map)));
  for (int rank = 0; rank < map.ranks; ++rank) text += fmt::format("<th scope=\"col\">{}</th>", rank);
  text += "</tr></thead>\n<tbody>\n";
  for (int a = 0; a < map.ranks; ++a) {
    text += fmt::format("<tr><th scope=\"row\">{}</th>", a);
    for (int b = 0; b < map.ranks; ++b) {
      const std::optional<double> seconds = a == b ? std::nullopt : map.seconds(a, b);
      const int shade = seconds && median > 0 ? shade_of(*seconds / median) : 0;
      text += fmt::format("<td class=\"s{}\">{}</td>", shade, a == b ? "" : value_text(map, a, b));
    }
    text += "</tr>\n";
  }
  return text + "</tbody>\n</table></div>\n";
}

// A paragraph for each line of `lines`.
std::string paragraphs(std::string_view lines, std::string_view attributes) {
  std::string text;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    if (end > 0) text += fmt::format("<p{}>{}</p>\n", attributes, tools::markup(lines.substr(0, end)));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return text;
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
  std::vector<double> all;
  for (const PairTime& pair : map.pairs) all.push_back(pair.seconds);
  return lower_median(std::move(all));
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

std::string pairs_page(const Results& results, std::span<const HeatMap> maps, const std::string& sentences) {
  tools::Page page{.title = "colbench pairs", .heading = "Messages between every two ranks", .style = kStyle};
  std::string notes;
  for (const std::string& warning : results.warnings) notes += warning + "\n";
  if (!results.ended_early.empty()) notes += "Ended before all was measured: " + results.ended_early + "\n";
  page.summary = paragraphs(run_text(results), " class=\"note\"") + paragraphs(sentences, "") +
                 paragraphs(notes, " class=\"warnings\"");
  std::string drawn;
  for (const HeatMap& map : maps) drawn += map_section(map);
  page.sections = {{"maps", "Maps", drawn},
                   {"repeat", "Repeat it",
                    fmt::format("<p><code>{}</code></p>\n", tools::markup(tools::shell_line(results.run.command)))}};
  return tools::page_text(page);
}

}  // namespace col::colbench

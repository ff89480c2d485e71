#include "colbench/p2p/pairs_page.hpp"

#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "colbench/report/head.hpp"
#include "common/page_style.hpp"
#include "common/text.hpp"

namespace col::colbench {
namespace {

// After tools::kPageStyle. Every shade has a contrast of at least 4.5 to the text on it.
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
      "<h2>{}</h2>\n<div class=\"wide\"><table>\n<caption>A row and a column for each rank. The darker, the slower: "
      "more "
      "than 1.1, 1.2, 1.5 and 2 times the median of all pairs.</caption>\n<thead><tr><th scope=\"col\">rank</th>",
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

std::string pairs_page(const Results& results, std::span<const HeatMap> maps, const std::string& sentences) {
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
      "<title>colbench pairs</title>\n<style>{}{}</style>\n</head>\n<body>\n<main>\n<h1>colbench pairs</h1>\n",
      tools::kPageStyle, kStyle);
  text += paragraphs(run_text(results), " class=\"note\"") + paragraphs(sentences, "");
  for (const HeatMap& map : maps) text += map_section(map);
  std::string notes;
  for (const std::string& warning : results.warnings) notes += warning + "\n";
  if (!results.ended_early.empty()) notes += "Ended before all was measured: " + results.ended_early + "\n";
  text += paragraphs(notes, " class=\"note\"");
  text += fmt::format("<h2>To repeat it</h2>\n<p><code>{}</code></p>\n",
                      tools::markup(fmt::format("{}", fmt::join(results.run.command, " "))));
  return text + "</main>\n</body>\n</html>\n";
}

}  // namespace col::colbench

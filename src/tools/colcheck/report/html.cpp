#include "colcheck/report/report.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/page.hpp"
#include "common/text.hpp"

namespace col::colcheck {
namespace {

constexpr std::size_t kMostFailureItems = 500;

// After what all pages have.
constexpr std::string_view kStyle = R"(
th, td { padding: .3rem .75rem; border: 1px solid var(--line); }
td.words { min-width: 18rem; }
tbody th { font-weight: 500; }
.passed { background: var(--good-back); color: var(--good); }
.failed { background: var(--bad-back); color: var(--bad); }
.skipped, .none { background: var(--odd-back); color: var(--odd); }
.unavailable { color: var(--faint); }
.failures { padding: 0; list-style: none; }
.failures li { margin: 0 0 .75rem; padding: .6rem .9rem; background: var(--panel); border-left: .25rem solid var(--bad);
  border-radius: .25rem; }
.failures p { margin: .15rem 0; }
)";

std::string count_words(const Count& count) {
  std::string words = fmt::format("{} passed", tools::grouped(count.passed));
  if (count.failed > 0) words += fmt::format(", {} failed", tools::grouped(count.failed));
  if (count.skipped > 0) words += fmt::format(", {} skipped", tools::grouped(count.skipped));
  return words;
}

std::string matrix_cell(const Tally& tally, std::size_t primitive, std::size_t column) {
  const Count& count = tally.primitives[primitive][column];
  const State state = tally.state(primitive, column);
  std::string_view symbol = "–";
  std::string words = count_words(count);
  switch (state) {
    case State::passed:
      symbol = "✔";
      break;
    case State::failed:
      symbol = "✘";
      words = fmt::format("{} of {} failed", tools::grouped(count.failed), tools::grouped(count.run()));
      if (count.skipped > 0) words += fmt::format(", {} skipped", tools::grouped(count.skipped));
      break;
    case State::skipped:
      words = fmt::format("all {} skipped", tools::grouped(count.skipped));
      break;
    case State::none:
      symbol = "·";
      words = "none: a hole";
      break;
    case State::unavailable:
      words = "not available";
      break;
  }
  return fmt::format("<td class=\"{}\"><span aria-hidden=\"true\">{}</span> {}</td>", to_string(state), symbol, words);
}

std::string matrix_section(const Tally& tally) {
  std::string text =
      "<div class=\"wide\"><table>\n<caption>Cases by primitive and backend. "
      "A cell is good only if something ran and nothing failed.</caption>\n"
      "<thead><tr><th scope=\"col\">Primitive</th>";
  for (const Column& column : tally.columns)
    text += fmt::format("<th scope=\"col\">{}</th>", tools::markup(column.label()));
  text += "</tr></thead>\n<tbody>\n";
  for (std::size_t primitive = 0; primitive < tally.primitives.size(); ++primitive) {
    text += fmt::format("<tr><th scope=\"row\">{}</th>", to_string(static_cast<Primitive>(primitive)));
    for (std::size_t column = 0; column < tally.columns.size(); ++column) text += matrix_cell(tally, primitive, column);
    text += "</tr>\n";
  }
  text += "</tbody>\n</table></div>\n";
  for (const Column& column : tally.columns) {
    if (column.used) continue;
    text += fmt::format("<p class=\"note\">{} was not used: {}</p>\n", tools::markup(column.label()),
                        tools::markup(tools::one_line(column.why_not)));
  }
  if (tally.holes() > 0) {
    text +=
        fmt::format("<p class=\"note\">{}: nothing is known about them.</p>\n", tools::counted(tally.holes(), "hole"));
  }
  return text;
}

std::string property_row(const PropertyCount& property) {
  const Count& total = property.total;
  const State state = total.failed > 0 ? State::failed : total.passed > 0 ? State::passed : State::skipped;
  const std::string_view verdict = state == State::failed   ? "✘ fails"
                                   : state == State::passed ? "✔ holds"
                                                            : "– not checked";
  return fmt::format(
      "<tr><th scope=\"row\">{}</th><td class=\"{}\">{}</td><td>{}</td><td>{}</td><td>{}</td>"
      "<td class=\"words\">{}</td></tr>\n",
      tools::markup(property.name), to_string(state), verdict, tools::grouped(total.passed),
      tools::grouped(total.failed), tools::grouped(total.skipped), tools::markup(property.summary));
}

std::string property_section(const Tally& tally) {
  if (tally.properties.empty()) return {};
  std::string text =
      "<div class=\"wide\"><table>\n<caption>Cases by property, over all backends.</caption>\n"
      "<thead><tr>";
  for (const char* head : {"Property", "Verdict", "Passed", "Failed", "Skipped", "What holds when it passes"}) {
    text += fmt::format("<th scope=\"col\">{}</th>", head);
  }
  text += "</tr></thead>\n<tbody>\n";
  for (const PropertyCount& property : tally.properties) text += property_row(property);
  return text + "</tbody>\n</table></div>\n";
}

std::string failure_item(const CaseResult& result) {
  const std::string token = token_of(result.c);
  const bool smaller = !result.smallest_token.empty();
  std::string text = fmt::format("<li><p><code>{}</code></p>\n<p>{}</p>\n", tools::markup(token),
                                 tools::markup(tools::one_line(found_by(result))));
  if (smaller) {
    text += fmt::format("<p>Smallest that fails too: <code>{}</code> {}</p>\n", tools::markup(result.smallest_token),
                        tools::markup(tools::one_line(result.smallest_text)));
  }
  return text + fmt::format("<p>Run it: <code>colcheck --repro {}</code></p></li>\n",
                            tools::markup(tools::shell_quoted(smaller ? result.smallest_token : token)));
}

std::string failure_section(const Results& results, std::size_t failures) {
  if (failures == 0) return {};
  std::string text = "<ul class=\"failures\">\n";
  std::size_t shown = 0;
  for (const CaseResult& result : results.cases) {
    if (result.verdict == Finding::Verdict::fail && ++shown <= kMostFailureItems) text += failure_item(result);
  }
  text += "</ul>\n";
  if (failures > kMostFailureItems) {
    text += fmt::format("<p>… and {} more (see --json).</p>\n", tools::grouped(failures - kMostFailureItems));
  }
  return text;
}

std::string skip_section(const Tally& tally) {
  if (tally.skips.empty()) return {};
  std::string text = "<ul>\n";
  for (const SkipReason& skip : tally.skips) {
    text +=
        fmt::format("<li>{}: {}</li>\n", tools::counted(skip.count, "case"), tools::markup(tools::one_line(skip.text)));
  }
  return text + "</ul>\n";
}

// The class and the words of the line that says it all.
std::pair<State, std::string> verdict_of(const Results& results, const Count& total) {
  const std::string counts =
      fmt::format("{} passed, {} failed, {} skipped (a skip is not a pass)", tools::counted(total.passed, "case"),
                  tools::grouped(total.failed), tools::grouped(total.skipped));
  if (!results.ended_early.empty()) {
    return {State::failed,
            fmt::format("✘ Ended before all was tried: {}. {}", tools::one_line(results.ended_early), counts)};
  }
  if (total.failed > 0) return {State::failed, "✘ " + counts};
  return total.passed > 0 ? std::pair(State::passed, "✔ " + counts) : std::pair(State::skipped, "– " + counts);
}

}  // namespace

std::string html_report(const Results& results) {
  const Tally counts = tally(results);
  const auto [state, verdict] = verdict_of(results, counts.total);
  std::string facts = "<dl class=\"facts\">\n";
  for (const auto& [name, value] : facts_of(results))
    facts += fmt::format("<dt>{}</dt><dd>{}</dd>\n", tools::markup(name), tools::markup(value));
  tools::Page page{.title = "colcheck: " + verdict,
                   .heading = "colcheck",
                   .summary = fmt::format("<p class=\"verdict {}\">{}</p>\n", to_string(state), tools::markup(verdict)),
                   .style = kStyle};
  const auto add = [&page](const char* id, const char* title, std::string body) {
    if (!body.empty()) page.sections.push_back({id, title, std::move(body)});
  };
  add("failures", "Failures", failure_section(results, counts.total.failed));
  add("matrix", "Support matrix", matrix_section(counts));
  add("properties", "Properties", property_section(counts));
  add("skipped", "Skipped", skip_section(counts));
  add("run", "Run", facts + "</dl>\n");
  return tools::page_text(page);
}

}  // namespace col::colcheck

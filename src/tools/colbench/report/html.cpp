
#include "colbench/report/reports.hpp"

#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "colbench/report/columns.hpp"
#include "colbench/report/json.hpp"
#include "colbench/report/summary.hpp"
#include "colbench/report/values.hpp"
#include "common/page.hpp"
#include "common/text.hpp"

namespace col::colbench {
namespace {

// After what all pages have.
constexpr std::string_view kReportStyle = R"(
pre { padding: .75rem 1rem; background: var(--panel); border-radius: .25rem; white-space: pre-wrap; }
.verdict.good { background: var(--good-back); color: var(--good); }
.verdict.bad { background: var(--bad-back); color: var(--bad); }
.verdict.odd { background: var(--odd-back); color: var(--odd); }
.findings { margin: 1rem 0 0; padding-left: 1.2rem; }
.caveat:first-child, h2 + .caveat { padding-left: .75rem; border-left: .25rem solid var(--odd); }
figure { margin: 0 0 2rem; }
figcaption .note { margin: 0 0 .5rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1rem; }
.chart { display: block; width: 100%; max-width: 38rem; height: auto; font: 12.5px system-ui, sans-serif; fill: none; stroke-width: 2; }
.chart text { fill: var(--faint); stroke: none; }
.chart .what { fill: var(--text); }
.chart .grid { stroke: var(--line); stroke-width: .8; }
.chart .bound { stroke-dasharray: 7 5; stroke-width: 1.5; }
.key { display: flex; flex-wrap: wrap; gap: .15rem 1.5rem; margin: .5rem 0 0; padding: 0; list-style: none;
  font-size: .875rem; }
.key svg { width: 28px; height: 12px; }
.bars { width: 100%; }
.bars th { width: 1%; font-weight: normal; white-space: normal; min-width: 8rem; }
.bars td.number { width: 1%; }
.bar { display: block; width: 100%; height: 1rem; }
.bar rect { fill: #1a7dbf; }
.bar path { stroke: var(--text); stroke-width: .7; }
@media (min-width: 80rem) {
  .widest { position: relative; left: 50%; width: max-content; max-width: calc(100vw - 3rem);
    transform: translateX(-50%); }
}
table { font-size: .875rem; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); }
td.words { min-width: 28rem; }
tr.bad td { background: var(--bad-back); color: var(--bad); }
tr.faint td { color: var(--faint); }
summary { cursor: pointer; color: var(--faint); }
)";

std::string safe(std::string_view text) {
  return tools::markup(tools::one_line(text));
}

std::string command_of(const RunFacts& run) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,+%@";
  std::vector<std::string> words;
  for (const std::string& raw : run.command) {
    const std::string word = tools::one_line(raw);
    const bool plain = !word.empty() && word.find_first_not_of(kPlain) == std::string::npos;
    words.push_back(plain ? word : tools::shell_quoted(word));
  }
  return fmt::format("{}", fmt::join(words, " "));
}

std::string facts_section(const Results& results) {
  const RunFacts& run = results.run;
  std::vector<std::string> environment;
  for (const auto& [name, value] : run.environment) environment.push_back(fmt::format("{}={}", name, value));
  const std::pair<std::string_view, std::string> facts[] = {
      {"Rows", shared_text(results)},
      {"Processor", run.cpu},
      {"Kernel", run.kernel},
      {"Frequency governor", run.governor},
      {"Started", run.started},
      {"Took", tools::in_words(run.seconds)},
      {"Ranks started by", run.launcher},
      {"Interval wanted", run.target_interval > 0 ? "±" + percent_text(run.target_interval) + " %" : std::string()},
      {"Environment", fmt::format("{}", fmt::join(environment, " "))}};
  std::string text = "<dl class=\"facts\">\n";
  for (const auto& [name, value] : facts) {
    if (!value.empty()) text += fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, safe(value));
  }
  return text + "</dl>\n";
}

std::string findings_section(const Findings& findings) {
  if (findings.sentences.empty()) return {};
  std::string text = "<ul class=\"findings\">\n";
  for (const std::string& sentence : findings.sentences) text += fmt::format("<li>{}</li>\n", safe(sentence));
  return text + "</ul>\n";
}

std::string row_class(const Cell& cell) {
  if (!cell.invalid.empty()) return " class=\"bad\"";
  return cell.note.empty() ? "" : " class=\"faint\"";
}

std::string remark_of(const Cell& cell) {
  if (!cell.invalid.empty()) {
    return "✘ invalid: " + cell.invalid + (cell.check.first.empty() ? "" : "; first: " + cell.check.first);
  }
  if (!cell.note.empty()) return "– not measured: " + cell.note;
  return cell.bound.how.empty() ? "" : "bound: " + cell.bound.how;
}

std::string table_section(const Results& results) {
  const std::vector<Column> columns = page_columns(results);
  std::string text =
      "<div class=\"wide widest\"><table>\n<caption>Times are those of the slowest rank; bandwidths are in GB/s "
      "(1e9 bytes) and follow from the median.</caption>\n<thead><tr>";
  for (const Column& column : columns) {
    text += fmt::format("<th scope=\"col\"{}>{}</th>", column.left_aligned() ? "" : " class=\"number\"",
                        safe(column.table.name));
  }
  text += "<th scope=\"col\">remark</th></tr></thead>\n<tbody>\n";
  for (const Cell& cell : results.cells) {
    const Row row{cell, statistics_of(cell)};
    text += fmt::format("<tr{}>", row_class(cell));
    // Not by colour alone.
    std::string_view mark = cell.invalid.empty() ? "" : "✘ ";
    for (const Column& column : columns) {
      text += fmt::format("<td{}>{}{}</td>", column.left_aligned() ? "" : " class=\"number\"", mark,
                          safe(column.in_table(row)));
      mark = "";
    }
    text += fmt::format("<td class=\"words\">{}</td></tr>\n", safe(remark_of(cell)));
  }
  text += "</tbody>\n</table></div>\n<details><summary>What the columns mean</summary>\n<dl class=\"facts\">\n";
  for (const Column& column : columns) {
    text += fmt::format("<dt>{}</dt><dd>{}</dd>\n", safe(column.table.name), safe(column.meaning));
  }
  return text + "</dl></details>\n";
}

// The first column holds names if `named`, and all others numbers.
std::string facts_table(std::string_view caption, bool named, const std::vector<std::vector<std::string>>& rows) {
  std::string text = fmt::format("<div class=\"wide\"><table>\n<caption>{}</caption>\n<thead>", caption);
  for (const std::vector<std::string>& row : rows) {
    const bool is_head = &row == &rows.front();
    text += "<tr>";
    for (const std::string& cell : row) {
      const std::string_view number = named && &cell == &row.front() ? "" : " class=\"number\"";
      text += is_head ? fmt::format("<th scope=\"col\"{}>{}</th>", number, cell)
                      : fmt::format("<td{}>{}</td>", number, cell);
    }
    text += is_head ? "</tr></thead>\n<tbody>\n" : "</tr>\n";
  }
  return text + "</tbody>\n</table></div>\n";
}

std::string levels_table(const Machine& machine) {
  if (machine.levels.empty()) return {};
  std::vector<std::vector<std::string>> rows = {{"working set", "one rank", "all ranks together", "best seen"}};
  for (const Machine::Level& level : machine.levels)
    rows.push_back({size_text(level.bytes), safe(bandwidth_text(level.alone)), safe(bandwidth_text(level.together)),
                    safe(bandwidth_text(level.best))});
  return facts_table("Memory bandwidth in GB/s, bytes read plus bytes written, by what one rank works on.", false,
                     rows);
}

std::string fits_table(const Machine& machine) {
  if (machine.fits.empty()) return {};
  const auto rate = [](double seconds_per_byte) {
    return seconds_per_byte > 0 ? safe(bandwidth_text(1 / seconds_per_byte)) : std::string("-");
  };
  std::vector<std::vector<std::string>> rows = {
      {"backend", "α, per message", "1/β, GB/s", "1/γ, GB/s", "1/copy, GB/s"}};
  for (const Machine::Fit& fit : machine.fits)
    rows.push_back({safe(fit.backend), time_text(fit.alpha), rate(fit.beta), rate(fit.gamma), rate(fit.copy)});
  return facts_table("The cost model's parameters, fitted to messages of the backend and to the reduction kernel.",
                     true, rows);
}

std::string machine_section(const Machine& machine) {
  std::string times;
  const std::pair<std::string_view, double> list[] = {
      {"Hand-over between ranks, through a cache line", machine.hand_over_seconds},
      {"Wake-up of a sleeping rank", machine.wake_up_seconds},
      {"Switch between ranks on one core", machine.switch_seconds}};
  for (const auto& [name, seconds] : list) {
    if (seconds > 0) times += fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, time_text(seconds));
  }
  for (const Machine::Fit& fit : machine.fits) {
    std::string messages;
    for (const Machine::Fit::Message& message : fit.best)
      messages +=
          fmt::format("{}{}: {}", messages.empty() ? "" : ", ", size_text(message.bytes), time_text(message.seconds));
    if (!messages.empty())
      times += fmt::format("<dt>Best messages between nodes, over {}</dt><dd>{}</dd>\n", safe(fit.backend), messages);
  }
  if (!times.empty()) times = "<dl class=\"facts\">\n" + times + "</dl>\n";
  const std::string text = levels_table(machine) + times + fits_table(machine);
  return text.empty() ? "<p class=\"note\">It was not measured.</p>\n" : text;
}

std::string warnings_section(const Results& results) {
  if (results.warnings.empty()) return {};
  std::string text = "<ul class=\"warnings\">\n";
  for (const std::string& warning : results.warnings) text += fmt::format("<li>{}</li>\n", safe(warning));
  return text + "</ul>\n";
}

// Nothing in it can end the element or begin another.
std::string data_section(const Results& results) {
  std::string text = "<script type=\"application/json\" id=\"colbench-results\">\n";
  for (const char letter : json_results(results)) {
    if (letter == '<' || letter == '>' || letter == '&') {
      text += fmt::format("\\u{:04x}", static_cast<int>(letter));
    } else {
      text += letter;
    }
  }
  return text + "</script>\n";
}

std::string repeat_section(const RunFacts& run) {
  return fmt::format(
      "<pre><code>{}</code></pre>\n<p class=\"note\">All samples are in this page, as "
      "<code>--json</code> writes them, in the element <code>colbench-results</code>.</p>\n",
      tools::markup(command_of(run)));
}

std::string extras_section(const PageExtras& extras) {
  std::string text;
  for (const std::string& caveat : extras.caveats) text += fmt::format("<p class=\"caveat\">{}</p>\n", safe(caveat));
  for (const tools::NotedTable& table : extras.tables) text += tools::noted_section(table);
  return text;
}

std::string summary_of_page(const Results& results, const Findings& findings) {
  return fmt::format("<p class=\"note\">{}</p>\n<p class=\"verdict {}\">{}</p>\n", safe(run_text(results)),
                     findings.tone, safe(findings.headline)) +
         findings_section(findings) + warnings_section(results);
}

}  // namespace

std::string html_report(const Results& results, const PageExtras& extras) {
  const Findings findings = findings_of(results);
  tools::Page page{.title = "colbench: " + findings.headline,
                   .heading = extras.subject.empty() ? findings.subject : extras.subject,
                   .summary = summary_of_page(results, findings),
                   .data = data_section(results),
                   .style = kReportStyle};
  if (!extras.tables.empty()) page.sections.push_back({"result", extras.title, extras_section(extras)});
  Figure figure = figure_of(results, extras.name);
  figure.notes.pop_back();  // where it was measured: the page begins with it
  if (!figure.panels.empty()) page.sections.push_back({"figures", "Figures", charts_section(figure)});
  page.sections.push_back({"rows", "All rows", table_section(results)});
  page.sections.push_back({"machine", "Machine", machine_section(results.machine)});
  page.sections.push_back({"run", "Run", facts_section(results)});
  page.sections.push_back({"repeat", "Repeat it", repeat_section(results.run)});
  return tools::page_text(page);
}

}  // namespace col::colbench


#include "colbench/report/reports.hpp"

#include <exception>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "colbench/report/columns.hpp"
#include "colbench/report/json.hpp"
#include "colbench/report/summary.hpp"
#include "colbench/report/values.hpp"
#include "common/page_style.hpp"
#include "common/text.hpp"

namespace col::colbench {
namespace {

// How the page looks, after tools::kPageStyle.
constexpr std::string_view kReportStyle = R"(
pre { padding: .75rem 1rem; background: var(--panel); border-radius: .25rem; white-space: pre-wrap; }
.verdict.good { background: var(--good-back); color: var(--good); }
.verdict.bad { background: var(--bad-back); color: var(--bad); }
.verdict.odd { background: var(--odd-back); color: var(--odd); }
.findings { padding-left: 1.2rem; }
figure { margin: 0; }
figure svg { display: block; width: 100%; height: auto; }
@media (min-width: 80rem) {
  .widest { position: relative; left: 50%; width: max-content; max-width: calc(100vw - 3rem);
    transform: translateX(-50%); }
}
table { font-size: .875rem; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); }
.number { text-align: right; }
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

std::string curves_section(const Results& results) {
  std::string text = "<h2>Curves</h2>\n";
  try {
    return text + fmt::format("<figure role=\"img\" aria-label=\"Time and bus bandwidth over size\">\n{}\n</figure>\n",
                              plot_element(results));
  } catch (const std::exception& error) {
    return text + fmt::format("<p class=\"note\">Not drawn: {}.</p>\n", safe(error.what()));
  }
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
      "<h2>All rows</h2>\n<div class=\"wide widest\"><table>\n<caption>Times are those of the slowest rank; bandwidths "
      "are in "
      "GB/s "
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
  if (text.empty()) return "<h2>Machine</h2>\n<p class=\"note\">It was not measured.</p>\n";
  return "<h2>Machine</h2>\n" + text;
}

std::string warnings_section(const Results& results) {
  if (results.warnings.empty()) return {};
  std::string text = "<h2>Warnings</h2>\n<ul>\n";
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
      "<h2>Repeat it</h2>\n<pre><code>{}</code></pre>\n<p class=\"note\">All samples are in this page, as "
      "<code>--json</code> writes them, in the element <code>colbench-results</code>.</p>\n",
      tools::markup(command_of(run)));
}

}  // namespace

std::string html_report(const Results& results) {
  const Findings findings = findings_of(results);
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
      "<title>colbench: {0}</title>\n<style>{1}{4}</style>\n</head>\n<body>\n<main>\n<h1>{3}</h1>\n"
      "<p class=\"note\">{5}</p>\n<p class=\"verdict {2}\">{0}</p>\n",
      safe(findings.headline), tools::kPageStyle, findings.tone, safe(findings.subject), kReportStyle,
      safe(run_text(results)));
  text += findings_section(findings) + warnings_section(results) + curves_section(results) + table_section(results) +
          machine_section(results.machine) + "<h2>Run</h2>\n" + facts_section(results) + repeat_section(results.run) +
          data_section(results);
  return text + "</main>\n</body>\n</html>\n";
}

}  // namespace col::colbench

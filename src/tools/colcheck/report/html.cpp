#include <cstddef>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "colcheck/report/report.hpp"
#include "common/report.hpp"
#include "common/text.hpp"

namespace col::colcheck {
namespace {

using tools::Tone;

constexpr std::size_t kMostFailureItems = 500;

Tone tone_of(State state) {
  return state == State::passed        ? Tone::good
         : state == State::failed      ? Tone::bad
         : state == State::unavailable ? Tone::faint
                                       : Tone::attention;
}

std::string and_skipped(std::string words, const Count& count) {
  return count.skipped > 0 ? fmt::format("{}, {} skipped", words, tools::grouped(count.skipped)) : words;
}

// Says in words what its colour says.
tools::TextCell matrix_cell(const Tally& tally, std::size_t primitive, std::size_t column) {
  const Count& count = tally.primitives[primitive][column];
  const State state = tally.state(primitive, column);
  const auto cell = [&](std::string text) { return tools::TextCell{std::move(text), tone_of(state)}; };
  switch (state) {
    case State::passed:
      return cell(and_skipped(fmt::format("✔ {} passed", tools::grouped(count.passed)), count));
    case State::failed:
      return cell(and_skipped(
          fmt::format("✘ {} of {} failed", tools::grouped(count.failed), tools::grouped(count.run())), count));
    case State::skipped:
      return cell(fmt::format("– all {} skipped", tools::grouped(count.skipped)));
    case State::none:
      return cell("· none: a hole");
    case State::unavailable:
      break;
  }
  return cell("– not available");
}

tools::Table matrix_table(const Tally& tally) {
  tools::Table table{.title = "Cases by primitive and backend",
                     .about = "A cell is good only if something ran and nothing failed.",
                     .columns = {{"Primitive"}}};
  for (const Column& column : tally.columns) table.columns.push_back({column.label()});
  for (std::size_t primitive = 0; primitive < tally.primitives.size(); ++primitive) {
    tools::TextRow& row = table.rows.emplace_back();
    row.push_back({std::string(to_string(static_cast<Primitive>(primitive)))});
    for (std::size_t column = 0; column < tally.columns.size(); ++column)
      row.push_back(matrix_cell(tally, primitive, column));
  }
  for (const Column& column : tally.columns) {
    if (!column.used) table.notes.push_back({fmt::format("{} was not used: {}", column.label(), column.why_not)});
  }
  if (tally.holes() > 0)
    table.notes.push_back({tools::counted(tally.holes(), "hole") + ": nothing is known about them."});
  return table;
}

tools::Table properties_table(const Tally& tally) {
  tools::Table table{.title = "Cases by property, over all backends",
                     .columns = {{"Property"},
                                 {"Verdict"},
                                 {"Passed", true},
                                 {"Failed", true},
                                 {"Skipped", true},
                                 {"What holds when it passes"}}};
  for (const PropertyCount& property : tally.properties) {
    const Count& total = property.total;
    const State state = total.failed > 0 ? State::failed : total.passed > 0 ? State::passed : State::skipped;
    const char* verdict = state == State::failed ? "✘ fails" : state == State::passed ? "✔ holds" : "– not checked";
    table.rows.push_back({{property.name},
                          {verdict, tone_of(state)},
                          {tools::grouped(total.passed)},
                          {tools::grouped(total.failed)},
                          {tools::grouped(total.skipped)},
                          {property.summary}});
  }
  return table;
}

tools::Part failures(const Results& results, std::size_t count) {
  tools::Part part{.title = "Failures"};
  for (const CaseResult& result : results.cases) {
    if (result.verdict != Finding::Verdict::fail || part.facts.size() == kMostFailureItems) continue;
    const std::string token = token_of(result.c), &smallest = result.smallest_token;
    std::string text = found_by(result);
    if (!smallest.empty()) text += fmt::format(". Smallest that fails too: {} {}", smallest, result.smallest_text);
    part.facts.push_back(
        {token, std::move(text), "colcheck --repro " + tools::shell_quoted(smallest.empty() ? token : smallest)});
  }
  if (count > kMostFailureItems)
    part.notes.push_back({fmt::format("… and {} more (see --json).", tools::grouped(count - kMostFailureItems))});
  return part;
}

tools::Part skips(const Tally& tally) {
  tools::Part part{.title = "Skipped"};
  for (const SkipReason& skip : tally.skips)
    part.notes.push_back({fmt::format("{}: {}", tools::counted(skip.count, "case"), skip.text)});
  return part;
}

// The line that says it all.
tools::Note verdict_of(const Results& results, const Count& total) {
  const std::string counts =
      fmt::format("{} passed, {} failed, {} skipped (a skip is not a pass)", tools::counted(total.passed, "case"),
                  tools::grouped(total.failed), tools::grouped(total.skipped));
  if (!results.ended_early.empty())
    return {fmt::format("✘ Ended before all was tried: {}. {}", results.ended_early, counts), Tone::bad};
  if (total.failed > 0) return {"✘ " + counts, Tone::bad};
  return total.passed > 0 ? tools::Note{"✔ " + counts, Tone::good} : tools::Note{"– " + counts, Tone::attention};
}

}  // namespace

std::string html_report(const Results& results) {
  const Tally counts = tally(results);
  tools::Report report{.tool = "colcheck", .verdict = verdict_of(results, counts.total), .head = {.title = "colcheck"}};
  tools::Part run{.title = "Run"};
  for (const auto& [name, value] : facts_of(results)) run.facts.push_back({name, value});
  if (counts.total.failed > 0) report.parts.push_back(failures(results, counts.total.failed));
  report.parts.push_back({.title = "Support matrix", .tables = {matrix_table(counts)}});
  if (!counts.properties.empty()) report.parts.push_back({.title = "Properties", .tables = {properties_table(counts)}});
  if (!counts.skips.empty()) report.parts.push_back(skips(counts));
  report.parts.push_back(std::move(run));
  return html_page(report);
}

}  // namespace col::colcheck

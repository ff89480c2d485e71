#include "colcheck/report/report.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/report.hpp"
#include "common/text.hpp"

namespace col::colcheck {
namespace {

using tools::Note;
using tools::Style;
using tools::TextCell;
using tools::Tone;

std::string with_skipped(std::string text, const Count& count) {
  if (count.skipped > 0) text += fmt::format(" ({} skipped)", tools::grouped(count.skipped));
  return text;
}

std::string why_skipped(const Results& results, Primitive primitive, const Column& column) {
  constexpr std::size_t kMostReasons = 3;
  std::vector<std::string> reasons;
  for (const CaseResult& result : results.cases) {
    if (result.c.primitive != primitive || result.c.backend != column.backend || result.c.devices != column.devices)
      continue;
    if (std::find(reasons.begin(), reasons.end(), result.text) == reasons.end()) reasons.push_back(result.text);
  }
  const std::size_t shown = std::min(reasons.size(), kMostReasons);
  std::string text = fmt::format("skipped: {}", fmt::join(reasons.begin(), reasons.begin() + shown, "; "));
  if (shown < reasons.size()) text += fmt::format("; and {} more", tools::counted(reasons.size() - shown, "reason"));
  return text;
}

// The verdict of a property. It says in words what its colour says, as all cells do.
TextCell verdict_of(const Count& count, Style style) {
  if (count.failed > 0) {
    const std::string run = tools::counted(count.run(), "case");
    return {fmt::format("{} {} of {} failed", style.fail(), tools::grouped(count.failed), run), Tone::bad};
  }
  if (count.passed > 0) return {with_skipped(fmt::format("{} holds", style.pass()), count), Tone::good};
  return {fmt::format("{} not checked: all skipped", style.not_run()), Tone::attention};
}

TextCell count_cell(const Count& count, Style style) {
  if (count.all() == 0) return {std::string(style.hole()), Tone::faint};
  return {fmt::format("{}/{}/{}", tools::grouped(count.passed), tools::grouped(count.failed),
                      tools::grouped(count.skipped)),
          count.failed > 0 ? Tone::bad : Tone::plain};
}

// Primitives x backends, with notes below. A cell is good only if something ran and nothing failed. A cell without any
// case says so.
class Matrix {
 public:
  Matrix(const Results& results, const Tally& tally, Style style, bool on_page)
      : results_(results), tally_(tally), style_(style), on_page_(on_page) {}

  tools::Part part() {
    tools::Table table{
        .about = "Cases by primitive and backend. A cell is good only if something ran and nothing failed.",
        .columns = {{"primitive"}}};
    for (const Column& column : tally_.columns) table.columns.push_back({column.label()});
    for (std::size_t primitive = 0; primitive < tally_.primitives.size(); ++primitive) {
      tools::TextRow& row = table.rows.emplace_back();
      row.push_back({std::string(to_string(static_cast<Primitive>(primitive)))});
      for (std::size_t column = 0; column < tally_.columns.size(); ++column) row.push_back(cell(primitive, column));
    }
    tools::Part part{.tables = {std::move(table)}};
    if (!on_page_)
      part.notes.push_back({fmt::format("{} passed, {} failed/run, {} not run, {} none: no case looked at it",
                                        style_.pass(), style_.fail(), style_.not_run(), style_.hole())});
    for (std::size_t i = 0; i < reasons_.size(); ++i)
      part.notes.push_back({fmt::format("[{}] {}", i + 1, reasons_[i])});
    if (const std::size_t holes = tally_.holes(); holes > 0)
      part.notes.push_back(
          {tools::counted(holes, "hole") + " in the matrix: nothing is known about them", Tone::attention});
    return part;
  }

 private:
  TextCell cell(std::size_t primitive, std::size_t column) {
    const Count& count = tally_.primitives[primitive][column];
    switch (tally_.state(primitive, column)) {
      case State::passed:
        return {with_skipped(fmt::format("{} {}{}", style_.pass(), tools::grouped(count.passed), spelt_out(" passed")),
                             count),
                Tone::good};
      case State::failed:
        return {with_skipped(fmt::format("{} {}{}{}{}", style_.fail(), tools::grouped(count.failed),
                                         on_page_ ? " of " : "/", tools::grouped(count.run()), spelt_out(" failed")),
                             count),
                Tone::bad};
      case State::skipped: {
        const std::string all = spelt_out(fmt::format("all {} skipped ", tools::grouped(count.skipped)));
        const auto why = why_skipped(results_, static_cast<Primitive>(primitive), tally_.columns[column]);
        return {fmt::format("{} {}{}", style_.not_run(), all, mark(why)), Tone::attention};
      }
      case State::none:
        return {fmt::format("{} none{}", style_.hole(), spelt_out(": a hole")), Tone::attention};
      case State::unavailable:
        break;
    }
    return {fmt::format("{} {}{}", style_.not_run(), spelt_out("not available "), mark(tally_.columns[column].why_not)),
            Tone::faint};
  }

  // A terminal has no room for it: there, a note says what signs mean.
  std::string spelt_out(std::string words) const { return on_page_ ? words : ""; }

  // Numbered in the order of their first use.
  std::string mark(const std::string& reason) {
    const auto found = std::find(reasons_.begin(), reasons_.end(), reason);
    const auto number = found - reasons_.begin() + 1;
    if (found == reasons_.end()) reasons_.push_back(reason);
    return fmt::format("[{}]", number);
  }

  const Results& results_;
  const Tally& tally_;
  Style style_;
  bool on_page_;
  std::vector<std::string> reasons_;
};

// Properties x backends: passed/failed/skipped, with the meaning in words.
tools::Part property_table(const Tally& tally, Style style, bool on_page) {
  tools::Table table{.about = "Cases by property and backend, and what each property means.",
                     .columns = {{"property"}}};
  std::vector<std::size_t> shown;
  for (std::size_t column = 0; column < tally.columns.size(); ++column) {
    if (!tally.columns[column].used &&
        std::ranges::none_of(tally.properties, [&](auto& property) { return property.columns[column].all() > 0; }))
      continue;
    shown.push_back(column);
    table.columns.push_back({tally.columns[column].short_label()});
  }
  if (tally.has_alone()) table.columns.push_back({"no backend"});
  table.columns.push_back({"verdict"});
  if (on_page) table.columns.push_back({"what holds when it passes"});
  for (const PropertyCount& property : tally.properties) {
    tools::TextRow& row = table.rows.emplace_back(tools::TextRow{{property.name}});
    for (const std::size_t column : shown) row.push_back(count_cell(property.columns[column], style));
    if (tally.has_alone()) row.push_back(count_cell(property.alone, style));
    row.push_back(verdict_of(property.total, style));
    if (on_page) row.push_back({property.summary});
  }
  return {.tables = {std::move(table)}, .notes = {{"counts: passed/failed/skipped"}}};
}

std::string more_failures(std::size_t count, Style style) {
  return fmt::format("{} and {} more (see --json)", style.ellipsis(), tools::grouped(count));
}

// "TOKEN: rank 2: what", "TOKEN".
std::string case_text(const CaseResult& result) {
  const std::string found = found_by(result);
  return token_of(result.c) + (found.empty() ? "" : ": " + found);
}

// "✘ TOKEN: rank 2: what is wrong" and, where one was found, the smallest case that fails too. Not wrapped: a token is
// to be copied.
std::string failure_lines(const Results& results, Style style) {
  constexpr std::size_t kMost = 50;
  std::string text;
  std::size_t failures = 0;
  for (const CaseResult& result : results.cases) {
    if (result.verdict != Finding::Verdict::fail || ++failures > kMost) continue;
    text += fmt::format("{} {}\n", tools::toned(style.fail(), Tone::bad, style),
                        tools::one_line(case_text(result), !style.utf8));
    if (const std::string smallest = smallest_of(result); !smallest.empty())
      text += "  " + tools::one_line(fmt::format("{}; run: {}", smallest, repro_of(result)), !style.utf8) + "\n";
  }
  return failures > kMost ? text + more_failures(failures - kMost, style) + "\n" : text;
}

tools::Part failures_of(const Results& results, Style style) {
  constexpr std::size_t kMost = 500;
  tools::Part part{.title = "Failures"};
  std::size_t failures = 0;
  for (const CaseResult& result : results.cases) {
    if (result.verdict != Finding::Verdict::fail || ++failures > kMost) continue;
    const std::string smallest = smallest_of(result);
    part.facts.push_back(
        {token_of(result.c), found_by(result) + (smallest.empty() ? "" : "; " + smallest), repro_of(result)});
  }
  if (failures > kMost) part.notes.push_back({more_failures(failures - kMost, style)});
  return part;
}

// "– all of nccl skipped: why", "– 3 skipped: why".
std::vector<Note> left_out(const Results& results, const Tally& tally, Style style, std::size_t most_reasons) {
  std::vector<Note> notes;
  const auto add = [&](const std::string& what) { notes.push_back({fmt::format("{} {}", style.not_run(), what)}); };
  for (const auto& [name, why] : results.unavailable) add(fmt::format("all of {} skipped: {}", name, why));
  for (const std::string& limit : results.limits) add(limit);
  for (std::size_t i = 0; i < std::min(tally.skips.size(), most_reasons); ++i)
    add(fmt::format("{} skipped: {}", tools::grouped(tally.skips[i].count), tally.skips[i].text));
  if (tally.skips.size() > most_reasons)
    notes.push_back({fmt::format("{} and {} (see --json)", style.ellipsis(),
                                 tools::counted(tally.skips.size() - most_reasons, "more reason"))});
  return notes;
}

// Before all else, where it holds: the results are of stand-ins, or not all was tried.
std::vector<Note> warnings_of(const Results& results, Style style) {
  std::vector<Note> notes;
  if (has_fake(results.gpus))
    notes.push_back(
        {"These are stand-ins for GPUs: what they show is true of the program, and of no GPU.", Tone::attention});
  if (!results.ended_early.empty())
    notes.push_back({fmt::format("{} ended before all was tried: {}", style.fail(), results.ended_early), Tone::bad});
  return notes;
}

// "2,412 cases passed, 0 failed, 3 skipped, all of nccl skipped (a skip is not a pass) in 14.2 s; seed 0x1f".
std::string summary_of(const Results& results) {
  std::string skipped = tools::grouped(results.count(Finding::Verdict::skip)) + " skipped";
  for (const Unavailable& whole : results.unavailable) skipped += fmt::format(", all of {} skipped", whole.name);
  return fmt::format("{} passed, {} failed, {} (a skip is not a pass) in {}; seed {:#x}",
                     tools::counted(results.count(Finding::Verdict::pass), "case"),
                     tools::grouped(results.count(Finding::Verdict::fail)), skipped, tools::in_words(results.seconds),
                     results.seed);
}

// How to repeat the first failure, or else all cases.
std::string again_line(const Results& results, Style style) {
  if (results.effort == "repro") return {};
  const auto first = std::ranges::find(results.cases, Finding::Verdict::fail, &CaseResult::verdict);
  if (first != results.cases.end())
    return "the first failure alone: " + tools::one_line(repro_of(*first), !style.utf8) + "\n";
  const bool has_seed = results.command.find("--seed") != std::string::npos;
  return fmt::format("the same cases again: {}{}\n", tools::one_line(results.command, !style.utf8),
                     has_seed ? "" : fmt::format(" --seed {:#x}", results.seed));
}

}  // namespace

std::string result_line(const CaseResult& result, bool utf8) {
  const Style style{.utf8 = utf8};
  const std::string_view mark = result.verdict == Finding::Verdict::pass   ? style.pass()
                                : result.verdict == Finding::Verdict::fail ? style.fail()
                                                                           : style.not_run();
  return fmt::format("{} {}", mark, tools::one_line(case_text(result), !utf8));
}

std::string terminal_report(const Results& results, Style style) {
  constexpr std::size_t kMostReasons = 5;
  const Tally counts = tally(results);
  std::string text;
  const auto add = [&](const tools::Part& part) { text += report_text(part, style, ""); };
  if (!results.gpus.empty()) {
    add({.lead = {{fmt::format("GPUs: {}", list_of(results.gpus))}}});
    if (const std::string& nccl = results.gpus.front().nccl; !nccl.empty()) add({.lead = {{nccl}}});
    text += "\n";
  }
  if (results.effort != "repro") {
    add(Matrix(results, counts, style, false).part());
    text += "\n";
    if (!counts.properties.empty()) {
      add(property_table(counts, style, false));
      text += "\n";
    }
  }
  text += failure_lines(results, style);
  std::vector<Note> end = warnings_of(results, style);
  end.push_back({summary_of(results)});
  add({.lead = std::move(end), .notes = left_out(results, counts, style, kMostReasons)});
  text += again_line(results, style);
  text.pop_back();  // whoever prints it ends the line
  return text;
}

std::string html_report(const Results& results) {
  constexpr Style kStyle{.utf8 = true};
  const Tally counts = tally(results);
  const bool is_bad = counts.total.failed > 0 || !results.ended_early.empty(), is_good = counts.total.passed > 0;
  const std::string_view mark = is_bad ? kStyle.fail() : is_good ? kStyle.pass() : kStyle.not_run();
  tools::Report report{.tool = "colcheck",
                       .verdict = {fmt::format("{} {}", mark, summary_of(results)), is_bad    ? Tone::bad
                                                                                    : is_good ? Tone::good
                                                                                              : Tone::attention},
                       .head = {.title = "colcheck", .lead = warnings_of(results, kStyle)}};
  const auto add = [&](std::string title, tools::Part part) {
    part.title = std::move(title);
    report.parts.push_back(std::move(part));
  };
  if (counts.total.failed > 0) add("Failures", failures_of(results, kStyle));
  add("Support matrix", Matrix(results, counts, kStyle, true).part());
  if (!counts.properties.empty()) add("Properties", property_table(counts, kStyle, true));
  tools::Part skipped{.notes = left_out(results, counts, kStyle, counts.skips.size())}, run;
  if (!skipped.notes.empty()) add("Skipped", std::move(skipped));
  for (const auto& [name, value] : facts_of(results)) run.facts.push_back({name, value});
  add("Run", std::move(run));
  return html_page(report);
}

}  // namespace col::colcheck

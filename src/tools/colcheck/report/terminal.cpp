#include "colcheck/report/report.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/table.hpp"
#include "common/text.hpp"

namespace col::colcheck {
namespace {

constexpr std::size_t kMostFailureLines = 50;
constexpr std::size_t kMostReasons = 5;
constexpr std::size_t kMostReasonsOfCell = 3;

// A sentence in lines of the terminal, if there is one.
std::string sentence(const std::string& text, tools::Style style) {
  const std::string line = tools::one_line(text, !style.utf8);
  return style.columns == 0 ? line : tools::wrapped(line, style.columns, 0, 2);
}

// Numbered in the order of their first use.
class Notes {
 public:
  std::string mark(const std::string& text) {
    const auto found = std::find(texts_.begin(), texts_.end(), text);
    const auto number = found - texts_.begin() + 1;
    if (found == texts_.end()) texts_.push_back(text);
    return fmt::format("[{}]", number);
  }
  std::string lines(tools::Style style) const {
    std::string lines;
    for (std::size_t i = 0; i < texts_.size(); ++i)
      lines += sentence(fmt::format("[{}] {}", i + 1, texts_[i]), style) + "\n";
    return lines;
  }

 private:
  std::vector<std::string> texts_;
};

std::string why_skipped(const Results& results, Primitive primitive, const Column& column) {
  std::vector<std::string> reasons;
  for (const CaseResult& result : results.cases) {
    if (result.c.primitive != primitive || result.c.backend != column.backend || result.c.devices != column.devices)
      continue;
    if (std::find(reasons.begin(), reasons.end(), result.text) == reasons.end()) reasons.push_back(result.text);
  }
  const std::size_t shown = std::min(reasons.size(), kMostReasonsOfCell);
  std::string text = "skipped: " + fmt::format("{}", fmt::join(reasons.begin(), reasons.begin() + shown, "; "));
  if (shown < reasons.size()) text += fmt::format("; and {} more", tools::counted(reasons.size() - shown, "reason"));
  return text;
}

std::string with_skipped(std::string text, const Count& count) {
  if (count.skipped > 0) text += fmt::format(" ({} skipped)", tools::grouped(count.skipped));
  return text;
}

tools::TextCell matrix_cell(const Results& results, const Tally& tally, std::size_t primitive, std::size_t column,
                            Notes& notes, tools::Style style) {
  const Count& count = tally.primitives[primitive][column];
  switch (tally.state(primitive, column)) {
    case State::passed:
      return {with_skipped(fmt::format("{} {}", style.pass(), tools::grouped(count.passed)), count), tools::Tone::good};
    case State::failed:
      return {
          with_skipped(fmt::format("{} {}/{}", style.fail(), tools::grouped(count.failed), tools::grouped(count.run())),
                       count),
          tools::Tone::bad};
    case State::skipped: {
      const auto why = why_skipped(results, static_cast<Primitive>(primitive), tally.columns[column]);
      return {fmt::format("{} {}", style.not_run(), notes.mark(why)), tools::Tone::attention};
    }
    case State::none:
      return {fmt::format("{} none", style.hole()), tools::Tone::attention};
    case State::unavailable:
      return {fmt::format("{} {}", style.not_run(), notes.mark(tally.columns[column].why_not)), tools::Tone::faint};
  }
  return {};
}

tools::TextCell verdict_of(const Count& count, tools::Style style) {
  if (count.failed > 0) {
    return {fmt::format("{} {} of {} failed", style.fail(), tools::grouped(count.failed),
                        tools::counted(count.run(), "case")),
            tools::Tone::bad};
  }
  if (count.passed > 0) return {with_skipped(fmt::format("{} holds", style.pass()), count), tools::Tone::good};
  return {fmt::format("{} not checked: all skipped", style.not_run()), tools::Tone::attention};
}

tools::TextCell count_cell(const Count& count, tools::Style style) {
  if (count.all() == 0) return {std::string(style.hole()), tools::Tone::faint};
  return {fmt::format("{}/{}/{}", tools::grouped(count.passed), tools::grouped(count.failed),
                      tools::grouped(count.skipped)),
          count.failed > 0 ? tools::Tone::bad : tools::Tone::plain};
}

// "TOKEN: rank 2: what", "TOKEN".
std::string case_text(const CaseResult& result, bool ascii) {
  const std::string found = tools::one_line(found_by(result), ascii);
  return tools::one_line(token_of(result.c), ascii) + (found.empty() ? "" : ": " + found);
}

std::string failure_line(const CaseResult& result, tools::Style style) {
  const bool ascii = !style.utf8;
  std::string text =
      fmt::format("{} {}\n", tools::toned(style.fail(), tools::Tone::bad, style), case_text(result, ascii));
  if (!result.smallest_token.empty()) {
    const std::string token = tools::one_line(result.smallest_token, ascii);
    const std::string what = result.smallest_text.empty() ? "" : ": " + tools::one_line(result.smallest_text, ascii);
    text += fmt::format("  smallest: {}{}; run: colcheck --repro {}\n", token, what, tools::shell_quoted(token));
  }
  return text;
}

}  // namespace

std::string support_matrix(const Results& results, const Tally& tally, tools::Style style) {
  std::vector<std::vector<tools::TextCell>> rows = {{{"primitive"}}};
  for (const Column& column : tally.columns) rows[0].push_back({tools::one_line(column.label(), !style.utf8)});
  Notes notes;
  for (std::size_t primitive = 0; primitive < tally.primitives.size(); ++primitive) {
    auto& row = rows.emplace_back();
    row.push_back({std::string(to_string(static_cast<Primitive>(primitive)))});
    for (std::size_t column = 0; column < tally.columns.size(); ++column) {
      row.push_back(matrix_cell(results, tally, primitive, column, notes, style));
    }
  }
  std::string text = tools::render_table(rows, style);
  text += fmt::format("{} passed  {} failed/run  {} not run  {} none: no case looked at it\n", style.pass(),
                      style.fail(), style.not_run(), style.hole());
  text += notes.lines(style);
  if (const std::size_t holes = tally.holes(); holes > 0) {
    text += tools::toned(fmt::format("{} in the matrix: nothing is known about them", tools::counted(holes, "hole")),
                         tools::Tone::attention, style) +
            "\n";
  }
  return text;
}

std::string property_table(const Tally& tally, tools::Style style) {
  std::vector<std::vector<tools::TextCell>> rows = {{{"property"}}};
  const auto shown = [&](std::size_t column) {
    return tally.columns[column].used || std::any_of(tally.properties.begin(), tally.properties.end(),
                                                     [&](auto& p) { return p.columns[column].all() > 0; });
  };
  for (std::size_t column = 0; column < tally.columns.size(); ++column) {
    if (shown(column)) rows[0].push_back({tools::one_line(tally.columns[column].short_label(), !style.utf8)});
  }
  if (tally.has_alone()) rows[0].push_back({"no backend"});
  rows[0].push_back({"verdict"});
  for (const PropertyCount& property : tally.properties) {
    auto& row = rows.emplace_back();
    row.push_back({tools::one_line(property.name, !style.utf8)});
    for (std::size_t column = 0; column < tally.columns.size(); ++column) {
      if (shown(column)) row.push_back(count_cell(property.columns[column], style));
    }
    if (tally.has_alone()) row.push_back(count_cell(property.alone, style));
    row.push_back(verdict_of(property.total, style));
  }
  return tools::render_table(rows, style) + "counts: passed/failed/skipped\n";
}

std::string failure_lines(const Results& results, tools::Style style) {
  std::string text;
  std::size_t failures = 0;
  for (const CaseResult& result : results.cases) {
    if (result.verdict == Finding::Verdict::fail && ++failures <= kMostFailureLines)
      text += failure_line(result, style);
  }
  if (failures > kMostFailureLines) {
    text +=
        fmt::format("{} and {} more (see --json)\n", style.ellipsis(), tools::grouped(failures - kMostFailureLines));
  }
  return text;
}

std::string left_out_lines(const Results& results, const Tally& tally, tools::Style style) {
  std::string text;
  const auto add = [&](const std::string& what) {
    text += sentence(fmt::format("{} {}", style.not_run(), what), style) + "\n";
  };
  for (const auto& [name, why] : results.unavailable) add(fmt::format("all of {} skipped: {}", name, why));
  for (const std::string& limit : results.limits) add(limit);
  for (std::size_t i = 0; i < std::min(tally.skips.size(), kMostReasons); ++i)
    add(fmt::format("{} skipped: {}", tools::grouped(tally.skips[i].count), tally.skips[i].text));
  if (tally.skips.size() > kMostReasons) {
    text += fmt::format("{} and {} (see --json)\n", style.ellipsis(),
                        tools::counted(tally.skips.size() - kMostReasons, "more reason"));
  }
  return text;
}

std::string gpu_lines(const Results& results, tools::Style style) {
  if (results.gpus.empty()) return {};
  std::string text = fmt::format("GPUs: {}\n", tools::one_line(list_of(results.gpus), !style.utf8));
  const std::string& nccl = results.gpus.front().nccl;
  if (!nccl.empty()) text += tools::one_line(nccl, !style.utf8) + "\n";
  if (has_fake(results.gpus))
    text += tools::toned("These are stand-ins for GPUs: what they show is true of the program, and of no GPU.",
                         tools::Tone::attention, style) +
            "\n";
  return text + "\n";
}

std::string summary_line(const Results& results) {
  std::string skipped = tools::grouped(results.count(Finding::Verdict::skip)) + " skipped";
  for (const Unavailable& whole : results.unavailable) skipped += fmt::format(", all of {} skipped", whole.name);
  return fmt::format("{} passed, {} failed, {} (a skip is not a pass) in {}; seed {:#x}",
                     tools::counted(results.count(Finding::Verdict::pass), "case"),
                     tools::grouped(results.count(Finding::Verdict::fail)), skipped, tools::in_words(results.seconds),
                     results.seed);
}

std::string again_line(const Results& results, tools::Style style) {
  if (results.effort == "repro") return {};
  const auto first = std::ranges::find(results.cases, Finding::Verdict::fail, &CaseResult::verdict);
  if (first != results.cases.end()) {
    const std::string token = first->smallest_token.empty() ? token_of(first->c) : first->smallest_token;
    return "the first failure alone: colcheck --repro " + tools::one_line(tools::shell_quoted(token), !style.utf8) +
           "\n";
  }
  const bool has_seed = results.command.find("--seed") != std::string::npos;
  return fmt::format("the same cases again: {}{}\n", tools::one_line(results.command, !style.utf8),
                     has_seed ? "" : fmt::format(" --seed {:#x}", results.seed));
}

std::string result_line(const CaseResult& result, bool utf8) {
  const tools::Style style{.utf8 = utf8};
  const std::string_view mark = result.verdict == Finding::Verdict::pass   ? style.pass()
                                : result.verdict == Finding::Verdict::fail ? style.fail()
                                                                           : style.not_run();
  return fmt::format("{} {}", mark, case_text(result, !utf8));
}

std::string terminal_report(const Results& results, tools::Style style) {
  const Tally counts = tally(results);
  std::string text = gpu_lines(results, style);
  if (results.effort != "repro") {
    text += support_matrix(results, counts, style) + "\n";
    if (!counts.properties.empty()) text += property_table(counts, style) + "\n";
  }
  text += failure_lines(results, style);
  if (!results.ended_early.empty()) {
    text += fmt::format("{} ended before all was tried: {}\n", tools::toned(style.fail(), tools::Tone::bad, style),
                        tools::one_line(results.ended_early, !style.utf8));
  }
  text += summary_line(results) + "\n" + left_out_lines(results, counts, style) + again_line(results, style);
  text.pop_back();  // whoever prints it ends the line
  return text;
}

}  // namespace col::colcheck

#include "colbench/plans/tune_report.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "colbench/plans/notation.hpp"
#include "common/text.hpp"

namespace col::colbench {
namespace {

constexpr std::string_view kWasMeasured = ". Measured: ";
constexpr std::string_view kDate = "; date: ";  // as SelectionTable::evidence() has it

bool same_but_for_ranks(const SelectionRule& a, const SelectionRule& b) {
  return a.collective == b.collective && a.min_bytes == b.min_bytes && a.max_bytes == b.max_bytes &&
         a.backend == b.backend && a.power_of_two == b.power_of_two && a.algorithm == b.algorithm;
}

// The rules from `first` on that are for the same collective, backend and ranks.
std::size_t end_of_list(const std::vector<TunedRule>& rules, std::size_t first) {
  std::size_t end = first;
  while (end < rules.size() && rules[end].rule.collective == rules[first].rule.collective &&
         rules[end].rule.backend == rules[first].rule.backend &&
         rules[end].rule.min_ranks == rules[first].rule.min_ranks)
    ++end;
  return end;
}

constexpr double kFaster = 1.005;

std::string advantage_text(const Advantage& advantage) {
  if (advantage.next.empty()) return "no other was measured";
  if (!advantage.told_apart) return fmt::format("not told apart from {}", advantage.next);
  if (advantage.factor < kFaster)
    return fmt::format("on the whole no faster than {}, which is slower at some size", advantage.next);
  return fmt::format("{:.2f} times as fast as {}, the next", advantage.factor, advantage.next);
}

std::size_t upper_end(const TunedSeries& series, std::size_t range) {
  return range < series.crossovers.size() ? series.crossovers[range].below : std::numeric_limits<std::size_t>::max();
}

const TunedRange& range_at(const TunedSeries& series, std::size_t point) {
  for (const TunedRange& range : series.ranges) {
    if (point <= range.last) return range;
  }
  return series.ranges.back();
}

struct TableChange {
  std::size_t first, last;  // bytes
  std::string from, to;
  double sum = 0;  // of log2 of how many times faster
  int sizes = 0;   // at which both were measured
};

std::string change_text(const TunedSeries& series, const TableChange& change) {
  std::string where(to_string(series.cell.operation));
  where += fmt::format(", {} ranks, {}", series.cell.ranks, series.backend);
  if (series.cell.operation != Operation::barrier) {
    where += fmt::format(", {}", rough_size_text(change.first));
    if (change.last != change.first) where += fmt::format(" to {}", rough_size_text(change.last));
  }
  const std::string gain =
      change.sizes == 0 ? "not compared" : fmt::format("{:.2f} times as fast", std::exp2(change.sum / change.sizes));
  return fmt::format("{}: {} in place of {}, {}", where, change.to, change.from, gain);
}

}  // namespace

std::vector<TunedRule> merged_rules(std::vector<TunedRule> rules) {
  std::vector<TunedRule> merged;
  std::size_t before = 0;  // where the last list in `merged` begins
  for (std::size_t first = 0; first < rules.size();) {
    const std::size_t end = end_of_list(rules, first);
    const std::size_t length = merged.size() - before;
    bool same = !merged.empty() && length == end - first;
    for (std::size_t i = 0; same && i < length; ++i) {
      const SelectionRule& a = merged[before + i].rule;
      const SelectionRule& b = rules[first + i].rule;
      same = same_but_for_ranks(a, b) && a.max_ranks + 1 == b.min_ranks;
    }
    if (!same) before = merged.size();
    for (std::size_t i = 0; first < end; ++first, ++i) {
      if (!same) {
        merged.push_back(std::move(rules[first]));
        continue;
      }
      const int ranks = rules[first].rule.max_ranks;
      merged[before + i].advantage += fmt::format("; on {} ranks {}", ranks, rules[first].advantage);
      merged[before + i].rule.max_ranks = ranks;
    }
  }
  return merged;
}

std::string selection_text(std::span<const TunedRule> tuned, const SelectionEvidence& evidence) {
  std::vector<SelectionRule> rules;
  std::vector<std::string> advantages;
  for (const TunedRule& one : tuned) {
    rules.push_back(one.rule);
    advantages.push_back(fmt::format("rule {}: {}", rules.size(), one.advantage));
  }
  const std::string machine = fmt::format("{}{}{}", evidence.machine, kWasMeasured, fmt::join(advantages, "; "));
  return selection_to_json(rules, {.machine = tools::one_line(machine),
                                   .date = tools::one_line(evidence.date),
                                   .command = tools::one_line(evidence.command)});
}

std::string evidence_of_rule(const std::string& evidence, std::size_t rule) {
  const std::size_t measured = evidence.find(kWasMeasured);
  const std::size_t date = evidence.find(kDate, measured);
  if (measured == std::string::npos || date == std::string::npos) return evidence;
  const std::size_t list = measured + kWasMeasured.size();
  const std::size_t begin = evidence.find(fmt::format("rule {}: ", rule), list);
  if (begin >= date) return evidence;
  const std::size_t end = std::min(evidence.find(fmt::format("; rule {}: ", rule + 1), begin), date);
  return evidence.substr(0, list) + evidence.substr(begin, end - begin) + evidence.substr(date);
}

std::vector<TunedRule> rules_of(const TunedSeries& series) {
  std::vector<TunedRule> rules;
  for (std::size_t i = 0; i < series.ranges.size(); ++i) {
    TunedRule tuned;
    tuned.rule.collective = collective_of(series.cell.operation).value();
    tuned.rule.min_ranks = tuned.rule.max_ranks = series.cell.ranks;
    // Calls below that a backend's own algorithm does not serve have rules of their own, which come later.
    if (i > 0 && is_backends_own(series.cell.operation, series.ranges[i - 1].algorithm))
      tuned.rule.min_bytes = upper_end(series, i - 1) + 1;
    tuned.rule.max_bytes = upper_end(series, i);
    tuned.rule.backend = series.backend;
    tuned.rule.algorithm = AlgorithmSpec::parse(series.ranges[i].algorithm);
    tuned.advantage = fmt::format("{}, {}", series.ranges[i].algorithm,
                                  advantage_text(advantage_of(series.points, series.ranges[i])));
    rules.push_back(std::move(tuned));
  }
  return rules;
}

std::string series_text(const TunedSeries& series) {
  std::string text =
      fmt::format("{}, {} ranks, {}{}\n", to_string(series.cell.operation), series.cell.ranks, series.backend,
                  series.without.empty() ? "" : fmt::format(", where {} does not serve", series.without));
  for (std::size_t i = 0; i < series.ranges.size(); ++i) {
    const std::string where =
        range_text(i == 0 ? std::nullopt : std::optional(upper_end(series, i - 1)),
                   i + 1 == series.ranges.size() ? std::nullopt : std::optional(upper_end(series, i)));
    text += fmt::format("  {}: {} ({})\n", where, series.ranges[i].algorithm,
                        advantage_text(advantage_of(series.points, series.ranges[i])));
  }
  return text;
}

std::vector<std::string> changes_of(const TunedSeries& series, const OtherChoice& other) {
  std::vector<std::string> lines;
  if (!series.without.empty()) return lines;  // what the other table takes is what is left out here
  std::optional<TableChange> open;
  const auto close = [&] {
    if (open) lines.push_back(change_text(series, *open));
    open.reset();
  };
  for (std::size_t i = 0; i < series.points.size(); ++i) {
    const TunedPoint& point = series.points[i];
    CellSpec cell = series.cell;
    cell.bytes = point.bytes;
    const std::string to = range_at(series, i).algorithm;
    const std::string from = other(cell).value_or("");
    if (from.empty() || from == to) {
      close();
      continue;
    }
    if (open && (open->from != from || open->to != to)) close();
    if (!open) open = TableChange{.first = point.bytes, .last = point.bytes, .from = from, .to = to};
    open->last = point.bytes;
    const TunedEntry* before = point.find(from);
    const TunedEntry* after = point.find(to);
    if (before == nullptr || after == nullptr) continue;
    open->sum += std::log2(before->median / after->median);
    ++open->sizes;
  }
  close();
  return lines;
}

}  // namespace col::colbench

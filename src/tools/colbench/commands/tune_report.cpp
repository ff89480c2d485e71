#include "colbench/commands/tune_report.hpp"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "colbench/commands/units.hpp"

namespace col::colbench {
namespace {

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

struct Change {
  std::size_t first, last;  // bytes
  std::string from, to;
  double sum = 0;  // of log2 of how many times faster
  int sizes = 0;   // at which both were measured
};

std::string change_text(const TunedSeries& series, const Change& change) {
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

std::vector<TunedRule> rules_of(const TunedSeries& series) {
  std::vector<TunedRule> rules;
  for (std::size_t i = 0; i < series.ranges.size(); ++i) {
    TunedRule tuned;
    tuned.rule.collective = collective_of(series.cell.operation).value();
    tuned.rule.min_ranks = tuned.rule.max_ranks = series.cell.ranks;
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
      fmt::format("{}, {} ranks, {}\n", to_string(series.cell.operation), series.cell.ranks, series.backend);
  for (std::size_t i = 0; i < series.ranges.size(); ++i) {
    const std::string from = i == 0 ? "" : rough_size_text(upper_end(series, i - 1));
    const bool last = i + 1 == series.ranges.size();
    const std::string where = last && i == 0 ? "at all sizes"
                              : i == 0       ? fmt::format("up to {}", rough_size_text(upper_end(series, i)))
                              : last         ? fmt::format("above {}", from)
                                             : fmt::format("{} to {}", from, rough_size_text(upper_end(series, i)));
    text += fmt::format("  {}: {} ({})\n", where, series.ranges[i].algorithm,
                        advantage_text(advantage_of(series.points, series.ranges[i])));
  }
  return text;
}

std::vector<std::string> changes_of(const TunedSeries& series, const OtherChoice& other) {
  std::vector<std::string> lines;
  std::optional<Change> open;
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
    if (!open) open = Change{.first = point.bytes, .last = point.bytes, .from = from, .to = to};
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

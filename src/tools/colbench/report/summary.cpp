#include "colbench/report/summary.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "common/text.hpp"

namespace col::colbench {
namespace {

bool has_samples(const Cell& cell) {
  return std::any_of(cell.launches.begin(), cell.launches.end(),
                     [](const LaunchSamples& launch) { return !launch.seconds.empty(); });
}

std::optional<double> over_median(double seconds, const Cell& cell, const CellStatistics& statistics) {
  if (statistics.n == 0 || statistics.median <= 0 || seconds <= 0 || !cell.invalid.empty()) return std::nullopt;
  return seconds / statistics.median;
}

}  // namespace

bool is_verified(const Cell& cell) {
  return cell.check.mode != "off" && cell.check.elements > 0 && cell.check.wrong == 0;
}

Summary summary_of(const Results& results) {
  Summary summary;
  summary.rows = results.cells.size();
  for (const Cell& cell : results.cells) {
    if (!cell.invalid.empty()) ++summary.invalid;
    if (cell.check.wrong > 0) ++summary.wrong;
    if (!has_samples(cell)) continue;
    ++summary.measured;
    if (cell.invalid.empty()) ++summary.good;
    if (cell.spec.operation != Operation::barrier) {
      ++summary.to_verify;
      if (is_verified(cell)) ++summary.verified;
    }
    if (cell.stop == "interval") ++summary.by_interval;
    if (cell.stop == "time") ++summary.by_time;
    if (cell.stop == "count") ++summary.by_count;
    if (cell.stop == "launches") ++summary.by_launches;
    if (cell.stop == "ended") ++summary.by_ending;
  }
  return summary;
}

std::optional<double> bound_fraction(const Cell& cell, const CellStatistics& statistics) {
  return over_median(cell.bound.seconds, cell, statistics);
}

std::optional<double> model_fraction(const Cell& cell, const CellStatistics& statistics) {
  if (!cell.model_seconds) return std::nullopt;
  return over_median(*cell.model_seconds, cell, statistics);
}

std::string verification_text(const Summary& summary) {
  if (summary.measured == 0) return "nothing was measured";
  if (summary.to_verify == 0) return "there are no data to verify";
  if (summary.verified == summary.to_verify) return "every row is verified";
  if (summary.verified == 0) return "no row is verified";
  return fmt::format("{} of {} verified", tools::grouped(summary.verified), tools::counted(summary.to_verify, "row"));
}

std::string stop_text(const Summary& summary) {
  std::string text;
  const auto add = [&](std::size_t count, const char* why) {
    if (count == 0) return;
    const std::string rows = text.empty() ? tools::counted(count, "row") + " stopped" : ", " + tools::grouped(count);
    text += fmt::format("{} {}", rows, why);
  };
  add(summary.by_interval, "by interval");
  add(summary.by_time, "by time");
  add(summary.by_count, "by count");
  add(summary.by_launches, "after all launches");
  add(summary.by_ending, "because the run ended");
  return text;
}

std::vector<Reason> reasons_of(const Results& results) {
  std::vector<Reason> reasons;
  for (std::size_t i = 0; i < results.cells.size(); ++i) {
    const Cell& cell = results.cells[i];
    const bool measured = !cell.invalid.empty();
    const std::string text = tools::one_line(measured ? cell.invalid : cell.note);
    if (text.empty()) continue;
    auto found = std::find_if(reasons.begin(), reasons.end(),
                              [&](const Reason& reason) { return reason.text == text && reason.measured == measured; });
    if (found == reasons.end()) found = reasons.insert(reasons.end(), {text, measured, {}});
    found->cells.push_back(i);
  }
  return reasons;
}

}  // namespace col::colbench

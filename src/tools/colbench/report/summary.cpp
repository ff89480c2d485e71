#include "colbench/report/summary.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "colbench/report/facets.hpp"
#include "colbench/report/values.hpp"
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

std::string level_text(const Machine::Level& level) {
  return fmt::format("{} {}/{}", size_text(level.bytes), bandwidth_text(level.alone), bandwidth_text(level.together));
}

// "allreduce 32M, ring over shm".
std::string title_of(const Cell& cell) {
  std::string text = value_of(cell, Facet::operation);
  for (const Facet facet : {Facet::size, Facet::algorithm, Facet::backend}) {
    const std::string words = words_of(cell, facet);
    if (words.empty()) continue;
    text += facet == Facet::algorithm ? ", " : facet == Facet::backend ? " over " : " ";
    text += words;
  }
  return text;
}

std::string subject_of(const Results& results) {
  constexpr std::size_t kMost = 4;
  std::vector<std::string> names;
  for (const Cell& cell : results.cells) {
    const std::string name = value_of(cell, Facet::operation);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  if (names.empty()) return "colbench";
  if (names.size() > kMost) return tools::counted(names.size(), "operation");
  return fmt::format("{}", fmt::join(names, ", "));
}

struct Distance {
  const Cell* cell;
  double fraction;
  double median;
};

void add_distances(const Results& results, std::vector<std::string>& sentences) {
  std::vector<Distance> distances;
  for (const Cell& cell : results.cells) {
    const CellStatistics statistics = statistics_of(cell);
    if (const auto fraction = bound_fraction(cell, statistics)) {
      distances.push_back({&cell, *fraction, statistics.median});
    }
  }
  if (distances.empty()) return;
  const auto [far, near] = std::minmax_element(
      distances.begin(), distances.end(), [](const Distance& a, const Distance& b) { return a.fraction < b.fraction; });
  sentences.push_back(fmt::format("Furthest from what this machine allows: {}, at {} % of the bound ({}, bound {}).",
                                  title_of(*far->cell), percent_text(far->fraction), time_text(far->median),
                                  time_text(far->cell->bound.seconds)));
  if (distances.size() > 1) {
    sentences.push_back(fmt::format("Nearest to it: {}, at {} % ({}).", title_of(*near->cell),
                                    percent_text(near->fraction), time_text(near->median)));
  }
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
    if (cell.spec.operation != Operation::barrier) {
      ++summary.to_verify;
      if (is_verified(cell)) ++summary.verified;
    }
    ++summary.stops[cell.stop];
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
  constexpr std::array<std::pair<const char*, const char*>, 5> kReasons = {{{"interval", "by interval"},
                                                                            {"time", "by time"},
                                                                            {"count", "by count"},
                                                                            {"launches", "after all launches"},
                                                                            {"ended", "because the run ended"}}};
  std::string text;
  for (const auto& [stop, why] : kReasons) {
    const auto found = summary.stops.find(stop);
    if (found == summary.stops.end()) continue;
    const std::size_t count = found->second;
    const std::string rows = text.empty() ? tools::counted(count, "row") + " stopped" : ", " + tools::grouped(count);
    text += fmt::format("{} {}", rows, why);
  }
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

std::string run_text(const Results& results) {
  const RunFacts& run = results.run;
  std::vector<std::string> where;
  if (run.cpus > 0) where.push_back(tools::counted(static_cast<std::size_t>(run.cpus), "CPU"));
  if (!run.cpu.empty()) where.push_back(tools::one_line(run.cpu));
  std::string text = fmt::format("colbench {}: {}", tools::one_line(run.version),
                                 tools::counted(static_cast<std::size_t>(run.ranks), "rank"));
  if (!run.host.empty()) text += " on " + tools::one_line(run.host);
  if (!where.empty()) text += fmt::format(" ({})", fmt::join(where, ", "));
  if (run.launches > 0) {
    const auto launches = static_cast<std::size_t>(run.launches);
    text += fmt::format(", {} launch{}", tools::grouped(launches), launches == 1 ? "" : "es");
  }
  if (!run.sync.empty()) text += run.sync == "barrier" ? ", barrier start" : ", common start";
  text += ", seed " + seed_text(run.seed);
  if (!run.gpus.empty()) text += "; " + tools::one_line(run.gpus);
  if (!run.nccl.empty()) text += "; " + tools::one_line(run.nccl);
  return text;
}

std::string machine_text(const Machine& machine, std::size_t columns) {
  std::string tail;
  const auto add = [&](const char* name, double seconds) {
    if (seconds <= 0) return;
    tail += fmt::format("{}{} {}", tail.empty() ? "" : ", ", name, time_text(seconds));
  };
  add("hand-over", machine.hand_over_seconds);
  add("wake-up", machine.wake_up_seconds);
  add("process switch", machine.switch_seconds);
  if (machine.levels.empty()) return tail;

  std::string text = "memory in GB/s, alone/together: " + level_text(machine.levels.front());
  const std::string last = machine.levels.size() > 1 ? ", " + level_text(machine.levels.back()) : "";
  if (!tail.empty()) tail = "; " + tail;
  for (std::size_t i = 1; i + 1 < machine.levels.size(); ++i) {
    const std::string next = ", " + level_text(machine.levels[i]);
    if (text.size() + next.size() + last.size() + tail.size() > columns) break;
    text += next;
  }
  return text + last + tail;
}

std::string shared_text(const Results& results) {
  std::vector<std::string> parts;
  const auto words = shared_words(results.cells);
  if (!words.empty()) parts.push_back(fmt::format("all rows: {}", fmt::join(words, ", ")));
  if (std::any_of(results.cells.begin(), results.cells.end(), was_chosen)) parts.push_back("* chosen by the library");
  if (!results.cells.empty()) parts.push_back("bandwidths in GB/s");
  return fmt::format("{}", fmt::join(parts, "; "));
}

Findings findings_of(const Results& results) {
  const Summary summary = summary_of(results);
  Findings findings;
  findings.subject = subject_of(results);
  const bool bad = summary.invalid > 0 || summary.wrong > 0 || !results.ended_early.empty();
  const bool whole = summary.measured > 0 && summary.measured == summary.rows && summary.verified == summary.to_verify;
  findings.tone = bad ? tools::Tone::bad : whole ? tools::Tone::good : tools::Tone::attention;
  findings.headline = fmt::format("{} {} measured; {}",
                                  bad     ? "✘"
                                  : whole ? "✔"
                                          : "–",
                                  tools::counted(summary.measured, "row"), verification_text(summary));
  if (summary.measured == 0) findings.headline = bad ? "✘ nothing was measured" : "– nothing was measured";
  if (summary.invalid > 0) findings.headline += fmt::format("; {} invalid", tools::counted(summary.invalid, "row"));
  if (!results.ended_early.empty()) {
    findings.headline += "; ended early: " + tools::one_line(results.ended_early);
  }
  add_distances(results, findings.sentences);
  for (const Reason& reason : reasons_of(results)) {
    findings.sentences.push_back(fmt::format("{} {}: {}.", tools::counted(reason.cells.size(), "row"),
                                             reason.measured ? "invalid" : "not measured", reason.text));
  }
  const std::string stop = stop_text(summary);
  if (!stop.empty()) findings.sentences.push_back(stop + ".");
  return findings;
}

}  // namespace col::colbench

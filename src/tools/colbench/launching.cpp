#include "colbench/launching.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include <fmt/format.h>

#include "colbench/machine/bound.hpp"
#include "colbench/machine/model.hpp"
#include "colbench/stats/sample.hpp"
#include "common/exit_codes.hpp"

namespace col::colbench {
namespace {

namespace exit_code = tools::exit_code;

void add_cell(Results& all, const Cell& cell) {
  const auto known =
      std::find_if(all.cells.begin(), all.cells.end(), [&](const Cell& c) { return c.spec == cell.spec; });
  if (known == all.cells.end()) {
    all.cells.push_back(cell);
    return;
  }
  known->launches.insert(known->launches.end(), cell.launches.begin(), cell.launches.end());
  if (known->algorithm.empty()) known->algorithm = cell.algorithm;
  if (known->backend.empty()) known->backend = cell.backend;
  known->fake = known->fake || cell.fake;
  if (known->note.empty()) known->note = cell.note;
  if (known->invalid.empty()) known->invalid = cell.invalid;
  if (known->check.wrong == 0) known->check.first = cell.check.first;
  known->check.elements += cell.check.elements;
  known->check.wrong += cell.check.wrong;
  known->bound.recalibrations += cell.bound.recalibrations;
}

void add_machine(Machine& all, const Machine& one) {
  all.hand_over_seconds = faster(all.hand_over_seconds, one.hand_over_seconds);
  all.switch_seconds = faster(all.switch_seconds, one.switch_seconds);
  all.wake_up_seconds = faster(all.wake_up_seconds, one.wake_up_seconds);
  for (const Machine::Level& level : one.levels) {
    const auto known =
        std::find_if(all.levels.begin(), all.levels.end(), [&](const auto& l) { return l.bytes == level.bytes; });
    if (known == all.levels.end()) {
      all.levels.push_back(level);
      continue;
    }
    known->alone = std::max(known->alone, level.alone);
    known->together = std::max(known->together, level.together);
    known->best = std::max(known->best, level.best);
    known->calibrations += level.calibrations;
  }
  std::sort(all.levels.begin(), all.levels.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  for (const Machine::Fit& fit : one.fits) {
    const auto known =
        std::find_if(all.fits.begin(), all.fits.end(), [&](const auto& f) { return f.backend == fit.backend; });
    if (known == all.fits.end()) {
      all.fits.push_back(fit);
      continue;
    }
    known->alpha = faster(known->alpha, fit.alpha);
    known->beta = faster(known->beta, fit.beta);
    known->gamma = faster(known->gamma, fit.gamma);
    known->copy = faster(known->copy, fit.copy);
    known->best_gamma = faster(known->best_gamma, fit.best_gamma);
    for (const Machine::Fit::Message& message : fit.best) add_best_message(*known, message);
  }
  // The ranks of the next launch may be elsewhere.
  if (!one.node_of_rank.empty()) all.node_of_rank = one.node_of_rank;
}

std::string stop_of(const Cell& cell, const Method& method, int launches, bool ended_early) {
  const CellStatistics statistics = statistics_of(cell);
  if (statistics.n == 0) return ended_early ? "ended" : "";
  if (static_cast<int>(statistics.n) >= method.max_iterations) return "count";
  if (statistics.has_interval() && statistics.half_width() <= method.target_interval) return "interval";
  if (ended_early) return "ended";
  return launches >= (method.launches > 0 ? method.launches : kMostLaunches) ? "launches" : "time";
}

// Why rows have no interval; empty when they have.
std::string why_no_interval(const RunFacts& run) {
  if (run.launches < 1 || run.launches >= static_cast<int>(kFewestLaunches)) return {};
  return fmt::format("no interval of the median: {} of the {} launches that 95 % needs{}", run.launches,
                     kFewestLaunches,
                     run.launcher == "colbench" ? "" : ", as the ranks are not colbench's own to start again");
}

constexpr int kFirstLook = 10;
constexpr int kCalibrating = 3;   // orders to calibrate, spread over the planned launches
constexpr int kCalibrations = 5;  // of each kernel in one of them
constexpr double kMostOverrun = 5;

bool has_ended(const Results& all) {
  const auto is_refused = [](const Cell& cell) { return !cell.note.empty(); };
  return !all.ended_early.empty() || all.exit_code == tools::exit_code::kWrongData ||
         (!all.cells.empty() && std::all_of(all.cells.begin(), all.cells.end(), is_refused));
}

bool is_within_target(const Cell& cell, const Method& method) {
  const CellStatistics statistics = statistics_of(cell);
  return !cell.note.empty() || (statistics.has_interval() && statistics.half_width() <= method.target_interval);
}

bool is_time_up(const Results& all, const Method& method, double spent_seconds) {
  double allowed = 0;
  bool has_few = false;
  for (const Cell& cell : all.cells) {
    if (!cell.note.empty()) continue;
    allowed += std::chrono::duration<double>(method.max_time).count();
    has_few = has_few || static_cast<int>(all_seconds(cell).size()) < method.min_iterations;
  }
  return spent_seconds >= (has_few ? kMostOverrun : 1) * allowed;
}

bool is_enough(const Results& all, const Method& method, double spent_seconds) {
  const int made = all.run.launches;
  if (method.launches > 0) return made >= method.launches;
  if (made < static_cast<int>(kFewestLaunches)) return false;
  if (made >= kMostLaunches || is_time_up(all, method, spent_seconds)) return true;
  return next_look(method, made - 1) == made && std::all_of(all.cells.begin(), all.cells.end(), [&](const Cell& cell) {
           return is_within_target(cell, method);
         });
}

// A time below the bound: either the machine can do more than it has shown so far, or the operation has not been done.
void calibrate_again(Results& all, const Method& method, const Launch& launch) {
  std::vector<CellSpec> impossible;
  for (Cell& cell : all.cells) {
    const double median = statistics_of(cell).median;
    if (median <= 0 || median >= bound_of(cell.spec, all.machine, all.run).seconds) continue;
    impossible.push_back(cell.spec);
    ++cell.bound.recalibrations;
  }
  if (impossible.empty()) return;
  Results again = launch({.method = method, .calibrations = 2 * kCalibrations, .cells = impossible});
  add_launch(all, again);
}

}  // namespace

void add_launch(Results& all, const Results& launch) {
  for (const Cell& cell : launch.cells) add_cell(all, cell);
  add_machine(all.machine, launch.machine);
  for (const std::string& warning : launch.warnings) {
    if (std::find(all.warnings.begin(), all.warnings.end(), warning) == all.warnings.end())
      all.warnings.push_back(warning);
  }
  if (!launch.run.sync.empty()) all.run.sync = launch.run.sync;
  if (launch.run.cpus > 0) all.run.cpus = launch.run.cpus;
  if (!launch.run.gpus.empty()) all.run.gpus = launch.run.gpus;
  if (!launch.run.nccl.empty()) all.run.nccl = launch.run.nccl;
  if (all.ended_early.empty()) all.ended_early = launch.ended_early;
  if (all.exit_code == exit_code::kSuccess) all.exit_code = launch.exit_code;
}

void conclude(Results& results, const Method& method) {
  std::size_t mostly_late = 0;
  for (const Cell& cell : results.cells) {
    std::size_t late = 0;
    for (const LaunchSamples& launch : cell.launches) late += static_cast<std::size_t>(launch.late);
    mostly_late += late > 0 && late * 3 >= statistics_of(cell).n;
  }
  if (mostly_late > 0)
    results.warnings.push_back(
        fmt::format("in {} of {} rows ranks often started late (skew): most of these samples were kept", mostly_late,
                    results.cells.size()));
  for (const std::string& line : {why_no_interval(results.run), state_text(results)})
    if (!line.empty()) results.warnings.push_back(line);
  const bool ended = !results.ended_early.empty();
  for (Cell& cell : results.cells) {
    cell.stop = stop_of(cell, method, results.run.launches, ended);
    if (cell.note.empty() && statistics_of(cell).n == 0 && ended) cell.note = results.ended_early;
  }
  apply_model(results);
  if (method.calibrate) apply_bounds(results, method.strict_bound);
  if (results.exit_code != exit_code::kSuccess || results.cells.empty()) return;
  const auto none = [](const Cell& cell) { return !cell.note.empty(); };
  if (std::all_of(results.cells.begin(), results.cells.end(), none)) results.exit_code = exit_code::kUsage;
  const auto impossible = [](const Cell& cell) { return cell.below_bound; };
  if (std::any_of(results.cells.begin(), results.cells.end(), impossible))
    results.exit_code = exit_code::kInvalidMeasurement;
}

int next_look(const Method& method, int made) {
  if (method.launches > 0) return method.launches;
  int look = kFirstLook;
  while (look <= made) look *= 2;
  return look;
}

void run_launches(Results& all, const Method& method, std::span<const CellSpec> cells, const Launch& launch,
                  Probe (*probe)()) {
  const std::vector<CellSpec> wanted(cells.begin(), cells.end());
  const int planned = method.planned_launches(), calibrating = method.calibrate ? std::min(kCalibrating, planned) : 0;
  double spent_seconds = 0;
  int calibrated = 0;
  while (!has_ended(all) && !is_enough(all, method, spent_seconds)) {
    const int number = all.run.launches;
    if (calibrated < calibrating && number * calibrating >= calibrated * planned) {
      ++calibrated;
      add_launch(all, launch({.method = method, .launch = number, .calibrations = kCalibrations, .cells = wanted}));
      if (has_ended(all)) break;
    }
    all.probes.push_back(probe());
    const std::int64_t begin = now_ns();
    add_launch(all, launch({.method = method, .launch = number, .cells = wanted}));
    spent_seconds += static_cast<double>(now_ns() - begin) * 1e-9;
    all.run.launches = number + 1;
  }
  if (!all.probes.empty()) all.probes.push_back(probe());
  if (method.calibrate && !has_ended(all)) calibrate_again(all, method, launch);
}

}  // namespace col::colbench

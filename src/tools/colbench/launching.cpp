#include "colbench/launching.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "colbench/machine/bound.hpp"
#include "colbench/merge.hpp"
#include "colbench/rank/start_line.hpp"
#include "colbench/stats/median_interval.hpp"
#include "common/exit_codes.hpp"

namespace col::colbench {
namespace {

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

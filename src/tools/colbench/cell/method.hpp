// The interface between commands and the measuring itself.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "colbench/cell/results.hpp"

namespace col::colbench {

inline constexpr int kMostLaunches = 40;  // if no number is given

// How cells are measured. CellSpec has what differs between cells.
struct Method {
  int ranks = 2;
  // How often the ranks are started. 0: as often as needed, by the rules of run_launches().
  int launches = 0;
  double target_interval = 0.02;  // half width of the median's interval, over the median
  int min_iterations = 30;        // of all launches together
  int max_iterations = 100'000;
  int warm_ups = 2;  // operations before the first one that counts, each time a cell is started
  Duration max_time = std::chrono::seconds(1);  // per cell, all launches together
  std::uint64_t seed = 0;
  bool shuffle = true;        // a new order of cells in every launch and round
  bool barrier_sync = false;  // each sample starts at a barrier, not at a common moment
  std::string check = "sample";
  std::string skew = {};                        // "uniform:20us", "late:1:1ms"; empty: none
  Duration delay = {};                          // added to every operation, to see what compare finds
  double delay_fraction = 0;                    // the same, as a fraction of the operation's own median
  Duration timeout = std::chrono::seconds(60);  // of one operation
  bool calibrate = true;                        // measure the machine, for %bound and %model
  bool strict_bound = true;                     // a median below the physical bound makes a cell invalid
  bool quiet = false;                           // neither a progress line, nor notes and warnings before it measures
  std::vector<std::string> fits = {};           // backends whose messages are fitted for %model

  // Each launch gets this part of max_time and of the iterations.
  int planned_launches() const { return launches > 0 ? launches : 20; }
};

// Starts the ranks, or works in the existing ones, and measures `cells`. Results::ended_early and exit_code say what
// went wrong; results until then are kept. Throws tools::UsageError if the cells cannot be measured (an algorithm that
// the ranks do not know), std::system_error if it cannot begin.
using Measure = std::function<Results(const Method& method, std::span<const CellSpec> cells)>;

}  // namespace col::colbench

// The seam between commands and the measuring itself.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "colbench/results.hpp"

namespace col::colbench {

inline constexpr int kMostLaunches = 40;  // when nobody says how many

// How cells are measured. What differs from cell to cell is in CellSpec.
struct Method {
  int ranks = 2;
  // How often the ranks are started. 0: as often as needed, by the rules of run_launches().
  int launches = 0;
  double target_interval = 0.02;  // half width of the median's interval, over the median
  int min_iterations = 30;        // of all launches together
  int max_iterations = 100'000;
  int warm_ups = 2;  // operations before the first one that counts, each time a cell is taken up
  Duration max_time = std::chrono::seconds(1);  // per cell, all launches together
  std::uint64_t seed = 0;
  bool shuffle = true;        // a new order of cells in every launch and round
  bool barrier_sync = false;  // each sample starts at a barrier instead of at a common deadline
  std::string check = "sample";
  std::string skew = {};                        // "uniform:20us", "late:1:1ms"; empty: none
  Duration delay = {};                          // added to every operation, to see what compare sees
  double delay_fraction = 0;                    // the same, of the operation's own median
  Duration timeout = std::chrono::seconds(60);  // of one operation
  bool calibrate = true;                        // measure the machine, for %bound and %model
  bool strict_bound = true;                     // a median below the physical bound makes a cell invalid
  std::vector<std::string> fits = {};           // backends whose messages are to be fitted for %model

  // Each launch gets such a part of max_time and of the iterations.
  int planned_launches() const { return launches > 0 ? launches : 20; }
};

// Starts the ranks, or works in those that are there, and measures `cells`. What went wrong is in Results::ended_early
// and exit_code: what had been measured by then is there. Throws tools::UsageError when the cells cannot be measured
// (an algorithm that is unknown to the ranks), std::system_error when it cannot begin.
using Measure = std::function<Results(const Method& method, std::span<const CellSpec> cells)>;

}  // namespace col::colbench

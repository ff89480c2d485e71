// What a run has found: the raw samples, and everything a report says about them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "colbench/cell/cell.hpp"

namespace col::colbench {

// The samples of one cell in one launch, in the order in which they were taken. One sample is one operation (stream:
// the mean of a window of them), the maximum over all ranks.
struct LaunchSamples {
  int launch = 0;  // from 0
  std::vector<double> seconds = {};
  std::vector<double> start_skew =
      {};  // seconds between the common start and the last rank's start; as long as seconds
  // The same samples on the GPUs' own clocks, between events around each operation, the maximum over all ranks; as long
  // as seconds, or empty where there are no such times.
  std::vector<double> device_seconds = {};
  int late = 0;  // operations that were thrown away because a rank started too late
};

struct Check {
  std::string mode = "sample";  // "off", "sample", "all"
  std::size_t elements = 0;     // looked at, on all ranks
  std::size_t wrong = 0;
  std::string first = {};  // the first wrong one, in words: "rank 1, element 7: 3, not 12"
};

// No operation can take less: what must move, at the best speed that this machine has shown.
struct Bound {
  double seconds = 0;      // 0: none is known
  std::string how = {};    // "64 MiB must move at 41.2 GB/s (memory)", "1 hand-over of 0.2 us"
  int calibrations = 0;    // how many the best speed is the best of
  int recalibrations = 0;  // because a time was below it
};

struct Cell {
  CellSpec spec = {};
  std::string backend = {};    // what ran: "shm"
  std::string algorithm = {};  // what ran: "ring"; of a choice of the library's, what it chose
  std::vector<LaunchSamples> launches = {};
  std::string stop =
      {};  // why sampling ended: "interval" (within the target), "time", "count", "launches", "ended" (early)
  Check check = {};
  Bound bound = {};
  std::optional<double> model_seconds = {};  // the plan's simulated cost under the fitted parameters
  // Why the cell counts for nothing: wrong data, below the bound. Empty when it is good.
  std::string invalid = {};
  bool below_bound = false;  // that is the reason
  bool fake = false;         // measured over stand-ins for GPUs: it says nothing of any
  std::string note = {};     // why it was not measured at all; no samples then
};

// What calibration has found about this machine. Bandwidths count bytes read plus bytes written, as STREAM does.
struct Machine {
  struct Level {
    std::size_t bytes = 0;  // working set of one rank
    double alone = 0;       // bytes per second, one rank
    double together = 0;    // of all ranks at once
    double best = 0;        // the best that was seen at this level, of whatever kind: what bounds are made of
    int calibrations = 0;   // how many that is the best of
  };
  std::vector<Level> levels = {};  // ascending
  double hand_over_seconds = 0;    // from one rank to another through a cache line, one way; the best seen
  double wake_up_seconds = 0;      // from sleeping to running, median
  double switch_seconds = 0;       // from one process to the next on one core, the best seen
  // Fitted to the measured backend's messages and to the reduction kernel: the parameters of the cost model.
  struct Fit {
    std::string backend = {};
    double alpha = 0, beta = 0, gamma = 0, copy = 0;
    // The best that was seen between nodes, of whatever kind, by length: what bounds are made of. Ascending; empty when
    // all ranks are on one node.
    struct Message {
      std::size_t bytes = 0;
      double seconds = 0;
      int calibrations = 0;  // how many that is the best of
    };
    std::vector<Message> best = {};
    double best_gamma = 0;  // seconds to reduce a byte
  };
  std::vector<Fit> fits = {};
  // Ranks with the same number share a host and its network. Empty when all do.
  std::vector<int> node_of_rank = {};
};

// How long fixed work took, beside the ranks.
struct Probe {
  double spin_seconds = 0;  // arithmetic in registers
  double copy_seconds = 0;  // of memory
};

struct RunFacts {
  std::string version = {};
  std::vector<std::string> command = {};  // argv
  std::string started = {};               // UTC, ISO 8601
  std::string launcher = {};              // "colbench" when it started the ranks itself
  std::string host = {}, cpu = {}, kernel = {}, governor = {};
  int cpus = 0;  // usable ones
  int ranks = 0;
  int launches = 0;
  std::uint64_t seed = 0;
  double seconds = 0;          // the whole run took
  double target_interval = 0;  // half width over median: 0.02
  std::string sync = {};       // "window" or "barrier"
  // "rank 0: NVIDIA H200 0000:1b:00.0; …", and "NCCL 2.28.9 (…)" where it can be used; empty when no cell has buffers
  // on GPUs.
  std::string gpus = {}, nccl = {};
  // The part of all processors' time that other work took right before the run, stolen time included; nothing under
  // another launcher, whose ranks are other work.
  std::optional<double> other_work = {};
  // Names and values of the environment that may change a result (COL_*, OMP_NUM_THREADS); nothing else of it.
  std::vector<std::pair<std::string, std::string>> environment = {};
};

struct Results {
  RunFacts run = {};
  Machine machine = {};
  std::vector<Cell> cells = {};
  std::vector<Probe> probes = {};          // before each launch, and after the last one
  std::vector<std::string> warnings = {};  // one line each: "4 ranks on 2 cores: they take turns"
  std::string ended_early = {};            // why the run ended before all was measured: a rank died; else empty
  int exit_code = 0;                       // of tools::exit_code
};

// ---- What follows from the samples ----------------------------------------------------------------------------------

// In seconds. A launch is one observation, its median: its samples share a placement in memory and a moment, so that
// more of them tell little more. `n` is 0 when there are no samples, and the rest 0.
struct CellStatistics {
  std::size_t n = 0;         // samples of all launches; so are min, max, p95, p99, mad, outliers, skew
  double median = 0;         // of the launches
  double low = 0, high = 0;  // launch_interval() of it, 95 %; infinite `high` below kFewestLaunches
  bool has_interval() const { return n > 0 && median > 0 && high < std::numeric_limits<double>::infinity(); }
  double half_width() const { return (high - low) / 2 / median; }  // over the median. Requires: has_interval()
  double min = 0, max = 0;
  double p95 = 0;
  std::optional<double> p99 = {};            // nothing below 100 samples
  double mad = 0;                            // median absolute deviation
  std::size_t outliers = 0;                  // Tukey: beyond 1.5 interquartile ranges; counted, not dropped
  double autocorrelation = 0;                // at lag 1
  double skew = 0;                           // median of start_skew
  std::optional<double> device_median = {};  // of the launches, of device_seconds; nothing if there are none
  // The interquartile range of the launches' medians, over their median; 0 with one launch.
  double launch_spread = 0;
};
CellStatistics statistics_of(const Cell& cell);
std::vector<double> all_seconds(const Cell& cell);
std::vector<double> launch_medians(const Cell& cell);

// Bytes per second: bytes / seconds, and with nccl-tests' factor (allreduce 2(p-1)/p, …) for p ranks of a group.
double algorithm_bandwidth(const CellSpec& spec, double seconds);
double bus_bandwidth(const CellSpec& spec, int group_size, double seconds);

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

// What is timed: one operation of one cell on one rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <col/group.hpp>

#include "colbench/cell/cell.hpp"
#include "colbench/cell/results.hpp"

namespace col::colbench {

// Not thread safe. Every rank of a run has one of the same cell, and calls the same in the same order.
class Workload {
 public:
  virtual ~Workload() = default;
  // Outside the timed window: what the operation works on gets values of its own for this iteration, different on each
  // rank, so that a result that was not made, or was made of old data, is seen.
  virtual void prepare(std::uint64_t iteration) = 0;
  // The timed operation. Blocking, with the deadline the workload was made with. Throws col::Error.
  virtual void run() = 0;
  // Outside the window, after run(): looks at elements of the result. `whole`: at as many as can be done in little
  // time, instead of a sample.
  virtual Check check(std::uint64_t iteration, bool whole) = 0;
  // How long the last run() took on this rank's GPU, by events around it in the stream it was called in; nothing where
  // that cannot be told. Blocks until the GPU has reached the second one, which is right after run().
  virtual std::optional<double> device_seconds() { return std::nullopt; }
  // How many operations a run() is: its time is divided by that.
  virtual double operations() const { return 1; }
  // Whether this rank's own times count: false for a rank without a part in the cell.
  virtual bool takes_part() const { return true; }
};

// ---- Of a collective ------------------------------------------------------------------------------------------------

struct WorkloadSetup {
  Group group = {};
  CellSpec spec = {};
  std::uint64_t seed = 0;
  std::string check_mode = "sample";
  Duration timeout = {};
};

// The algorithm that runs such a collective; empty if it is not a collective. A rank may call it alone.
std::string algorithm_of(Group& group, const CellSpec& spec);

// How many operations are in one window of cadence stream.
int stream_window(std::size_t bytes);

std::unique_ptr<Workload> make_collective_workload(const WorkloadSetup& setup);

// ---- Of messages between pairs of ranks -----------------------------------------------------------------------------

// `setup.group` is the group of all ranks.
std::unique_ptr<Workload> make_message_workload(const WorkloadSetup& setup);

// ---- Of calibration: the same bytes moved in several ways, on one rank ----------------------------------------------

enum class Kernel : std::uint8_t { copy, copy_around_cache, read, write, reduce };
inline constexpr int kKernelCount = 5;

// Bytes read plus bytes written by one operation on a working set of `bytes`.
std::size_t traffic_of(Kernel kernel, std::size_t bytes);

// Repeats the kernel often enough to be measurable; operations() says how often.
std::unique_ptr<Workload> make_kernel_workload(Kernel kernel, std::size_t bytes);

}  // namespace col::colbench

// The processors that a job may use and what they share.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace col::launch {

// Processors have the numbers of the operating system. A "CPU" is a hardware thread; a core has one or more of them.
struct Core {
  std::vector<int> cpus;  // those of its hardware threads that may be used, ascending; not empty
  int threads = 1;        // all its hardware threads, usable or not
  int number = 0;         // its number within the package
  int package = 0;
  int node = 0;  // NUMA node
};

struct Topology {
  std::vector<Core> cores;  // by NUMA node, then by their lowest usable CPU

  std::vector<int> cpus() const;   // all that may be used, ascending
  std::vector<int> nodes() const;  // NUMA nodes with usable CPUs, ascending
  bool has_one_package() const;
};

// Only for the processors in `allowed` (ascending, not empty). What sysfs (at `sys`) does not tell is assumed: an
// unknown processor is a core of its own, on NUMA node 0.
Topology read_topology(std::span<const int> allowed, const std::string& sys = "/sys");

}  // namespace col::launch

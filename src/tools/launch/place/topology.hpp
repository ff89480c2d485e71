// The processors that a job may use and what they share.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace col::launch {

// Processors are numbered as the operating system does: "CPU" is a hardware thread, a core has one or more of them.
struct Core {
  std::vector<int> cpus;  // of its hardware threads those that may be used, ascending; not empty
  int threads = 1;        // hardware threads that it has, usable or not
  int number = 0;         // its own, within the package
  int package = 0;
  int node = 0;  // NUMA node
};

struct Topology {
  std::vector<Core> cores;  // by NUMA node, then by their lowest usable CPU

  std::vector<int> cpus() const;   // all that may be used, ascending
  std::vector<int> nodes() const;  // NUMA nodes that have such, ascending
  bool has_one_package() const;
};

// Of the processors in `allowed` (ascending, not empty) alone. What sysfs, which is at `sys`, does not tell is assumed:
// a processor of which nothing is known is a core of its own, on NUMA node 0.
Topology read_topology(std::span<const int> allowed, const std::string& sys = "/sys");

}  // namespace col::launch

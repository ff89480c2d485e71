// The processors that a job may use and what they share; and lists of them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace col::launch {

// Lists of processors in the kernel's notation: "0-3,8".
inline constexpr int kMaxCpus = 65536;  // more than any kernel can number

// Ascending, without duplicates. Nothing if `text` is not such a list, or empty. White space at its end is ignored.
std::optional<std::vector<int>> parse_cpu_list(std::string_view text);

// Requires: ascending. Empty for no processors.
std::string cpu_list_text(std::span<const int> cpus);

// Processors have the numbers of the operating system. A "CPU" is a hardware thread; a core has one or more of them.
struct Core {
  std::vector<int> cpus;  // those of its hardware threads that may be used, ascending; not empty
  int threads = 1;        // all its hardware threads, usable or not
  int number = 0;         // its number within the package
  int package = 0;
  int node = 0;        // NUMA node
  int cache = -1;      // its third-level cache, by the lowest CPU there; -1: it has none, or nobody tells
  int first_cpu = -1;  // the lowest of all its hardware threads, usable or not: the core's name among jobs
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

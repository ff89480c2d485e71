// The processors that a job may use and what they share; and lists of them.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/unique_fd.hpp"

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

  std::vector<int> cpus() const;  // all that may be used, ascending
  bool has_one_package() const;
};

// Only for the processors in `allowed` (ascending, not empty). What sysfs (at `sys`) does not tell is assumed: an
// unknown processor is a core of its own, on NUMA node 0.
Topology read_topology(std::span<const int> allowed, const std::string& sys = "/sys");

// Locks of cores, by which jobs beside one another choose different ones.
//
// The lock of a core is an advisory one (flock) on the directory that the kernel shows for it in sysfs. So there is
// nothing to make, to clean up, or to have rights for: every user can open it, nobody can move it, and the kernel
// releases what a launcher held, however that ends. Launchers that see another sysfs, as in a container with a network
// of its own, do not see these locks.
//
// While an object is between take() and keep(), other launchers wait: of two that start at once, one chooses first.
class CoreLocks {
 public:
  // Holds nothing. `sys` is the path of sysfs.
  explicit CoreLocks(std::string sys = "/sys") : sys_(std::move(sys)) {}

  // Takes the locks of those of `cores` that nobody holds, and returns these. It blocks for a tenth of a second at
  // most. If locks cannot be had here, returns nothing, and error() says why.
  std::vector<Core> take(std::span<const Core> cores);
  // Gives back all but those with one of these processors (ascending).
  void keep(std::span<const int> cpus);

  // errno of what failed in take(); 0 if nothing did.
  int error() const noexcept { return error_; }
  std::size_t held() const noexcept { return locks_.size(); }

  // In a forked child: the locks are the parent's alone.
  void leave_to_parent() noexcept { locks_.clear(); }

 private:
  std::string sys_;
  std::vector<std::pair<Core, tools::UniqueFd>> locks_;
  tools::UniqueFd door_;
  int error_ = 0;
};

}  // namespace col::launch

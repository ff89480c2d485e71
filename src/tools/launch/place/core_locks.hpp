// Locks of cores, by which jobs beside one another choose different ones.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/unique_fd.hpp"
#include "launch/place/topology.hpp"

namespace col::launch {

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

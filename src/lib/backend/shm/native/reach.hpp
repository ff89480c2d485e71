// Reading the memory of other ranks through the kernel (process_vm_readv): one copy, where slots take two.
//
// Whether that works between all ranks of a group, they find out when they first could use it: it does not where a
// security module, a filter of system calls or different process namespaces are in the way. In one meeting each tells
// who it is, then tries; in the next each tells whether it could, and then all know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backend/shm/native/presence.hpp"

namespace col::shm_backend {

class Reach {
 public:
  // `token`: equal on all ranks of the group, and of no other.
  Reach(std::string group, int rank, std::uint64_t token);
  Reach(const Reach&) = delete;
  Reach& operator=(const Reach&) = delete;

  // Whether meetings are worth while for this alone. The same on all ranks at the same call, as are the following.
  bool may_work() const noexcept { return state_ != State::no; }
  bool works() const noexcept { return state_ == State::yes; }
  Identity identity() const noexcept;
  // After a meeting, with what all have told, by rank.
  void learn(std::span<const Presence> all);

  // After a meeting in which each has told whether it could read: false, and never again, when one could not (memory of
  // a device, say, that the probe did not meet).
  bool all_have_read(std::span<const Presence> all) noexcept;

  // Copies from the memory of `rank`; false when the kernel refuses. Throws peer_lost when that process is gone. `rest`
  // is called now and then, and may throw. Requires: works().
  bool read(int rank, std::uint64_t from, std::byte* to, std::size_t bytes, const std::function<void()>& rest) const;

 private:
  enum class State { unknown, tried, yes, no };

  const std::string group_;
  const int rank_;
  const std::uint64_t proof_;
  State state_ = State::unknown;
  bool reaches_all_ = false;
  std::vector<std::int64_t> pids_;  // by rank
};

}  // namespace col::shm_backend

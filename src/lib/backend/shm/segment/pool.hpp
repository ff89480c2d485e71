// Room for the segments of groups that are made from the ranks of another, at the end of that one's segment: every rank
// maps it already, so that a new group needs no file, no mapping and no store.
//
//   state of each unit, leavers | units
//
// It is much larger than the segment, but takes no memory until somebody uses it. The first rank of a new group takes a
// run of units; the last one that leaves the group gives them back. There are no locks: units are taken one by one, and
// who finds one taken gives those before it back. What a killed rank has taken is not used again.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace col::shm_backend {

// A view; the memory belongs to the segment.
class Pool {
 public:
  Pool() = default;
  Pool(std::byte* base, std::size_t bytes) noexcept;

  // The size of a pool for groups that need `bytes` at most.
  static std::size_t bytes_for(std::size_t bytes) noexcept;

  // Takes room for `bytes`, as zeros but for the first `kept`: these may hold anything, and are likely to be in memory.
  // Returns where it begins; nothing if there is none.
  std::optional<std::size_t> take(std::size_t bytes, std::size_t kept) const noexcept;
  // Gives it back. Its memory goes back to the machine, but for the first `kept` bytes, so that the next group begins
  // without page faults. `used`: whether there can be more than these in memory. Requires: nobody touches it any more.
  void give_back(std::size_t at, std::size_t bytes, std::size_t kept, bool used) const noexcept;

  // Every rank calls let_go() when it will not touch its room again, and after_leavers() before it touches a new one.
  // Without them, a tool that watches the threads of one process could not see that another thread had let go of the
  // same memory: the last one to do so may have been another process.
  void let_go() const noexcept { leavers().fetch_add(1, std::memory_order_release); }
  void after_leavers() const noexcept { static_cast<void>(leavers().load(std::memory_order_acquire)); }

  bool exists() const noexcept { return base_ != nullptr; }
  std::byte* at(std::size_t place) const noexcept { return base_ + place; }
  std::size_t place_of(const std::byte* memory) const noexcept { return static_cast<std::size_t>(memory - base_); }
  // Whether [place, place + bytes) lies inside.
  bool holds(std::size_t place, std::size_t bytes) const noexcept;

 private:
  static constexpr std::size_t kUnits = 1000;
  // The pages at the begin of a free unit that are not known to be zero.
  using State = std::atomic<std::uint32_t>;
  static constexpr std::uint32_t kTaken = ~std::uint32_t{0};

  State& state(std::size_t unit) const noexcept { return reinterpret_cast<State*>(base_)[unit]; }
  State& leavers() const noexcept { return state(kUnits); }
  std::size_t units_of(std::size_t bytes) const noexcept { return (bytes + unit_bytes_ - 1) / unit_bytes_; }
  // How many of the pages of a run's unit lie in its first `kept` bytes.
  std::size_t kept_pages(std::size_t unit_of_run, std::size_t kept) const noexcept;

  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t unit_bytes_ = 0;
};

}  // namespace col::shm_backend

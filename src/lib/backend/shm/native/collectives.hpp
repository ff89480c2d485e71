// The collectives of a group over its shared memory, on one rank.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <col/backend.hpp>

#include "backend/shm/native/cma.hpp"
#include "backend/shm/native/movement.hpp"
#include "backend/shm/native/steps.hpp"
#include "backend/shm/native/symmetric_collective.hpp"
#include "backend/shm/native/symmetric_memory.hpp"
#include "backend/shm/native/waiter.hpp"
#include "backend/shm/segment/layout.hpp"
#include "backend/shm/segment/segment.hpp"

namespace col::shm_backend {

class Collectives {
 public:
  // Requires: all arguments outlive it. `group`: the group's name.
  Collectives(const std::string& group, const Segment& segment, SymmetricHeap& heap, int rank, Attendant& attendant);

  static std::span<const NativeEntry> entries() noexcept;

  // Runs one of entries() to its end. Throws as Channel::start_native(), and mismatch if the other ranks' call is a
  // different one.
  void run(const Request& request, WaitContext& wait);
  // Call it after run() has thrown and the group has ended for all. When it returns, no rank writes into this rank's
  // memory any more, so the user can have it back.
  void take_back() noexcept;

 private:
  struct Choice {
    Form form;
    std::size_t chunk_bytes;
    core::Stores stores;
  };
  template <class Moves>
  class Port;
  template <class Told>
  class Telling;
  class Counting;
  template <class Work>
  class Loan;

  template <class Moves>
  void go(const Request& request, const Moves& moves, const Pattern& pattern, std::uint64_t steps, WaitContext& wait);
  void run_through_slots(const Request& request, WaitContext& wait);
  void move(const Request& request, const Movement& movement, Form form, WaitContext& wait);
  bool run_without_slots(const Request& request, WaitContext& wait);
  template <class Told>
  void meet(const Request& request, std::span<Told> told, WaitContext& wait);
  template <class Work>
  void borrow(const Work& work, WaitContext& wait);
  std::size_t agree_on_length(const Request& request, WaitContext& wait);
  // `bytes` is the size of the vector, or of the longest block.
  Choice choose(const Request& request, std::size_t bytes) const;
  void look_at_processors();
  // Throws the mismatch that this rank has found between its call and that of `peer`.
  [[noreturn]] void throw_mismatch(int peer, WaitContext& wait);
  int odd_one() const;
  bool all_have_called() const;

  const std::string& group_;
  const Segment& segment_;
  SymmetricHeap& heap_;
  const Area area_;
  const int rank_, size_;
  Attendant& attendant_;
  Waiter waiter_;
  std::uint64_t next_step_ = 1;
  std::uint64_t call_ = 0;                // number of the current or last call
  std::vector<std::uint64_t> seen_done_;  // by rank: its StepsDone when last seen
  std::uint64_t least_seen_done_ = 0;     // the least one of all others
  std::vector<const std::byte*> sources_;
  Cma cma_;
  std::vector<Presence> presences_;             // by rank
  bool others_may_write_ = false;               // whether others may write into this rank's memory
  std::vector<std::uint64_t> sent_, expected_;  // elements by rank, for calls whose counts no rank knows completely
  bool crowded_ = false;
  bool knows_processors_ = false;
};

}  // namespace col::shm_backend

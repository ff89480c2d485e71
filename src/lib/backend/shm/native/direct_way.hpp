// Calls that need no slots, as ranks reach one another's memory: symmetric memory, which all have mapped, or any, by
// copies of the kernel. All ranks tell where their buffers are, and decide alike whether it is possible.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <col/channel.hpp>

#include "backend/shm/native/cma.hpp"
#include "backend/shm/native/kernel_trials.hpp"
#include "backend/shm/native/lending.hpp"
#include "backend/shm/native/symmetric_collective.hpp"
#include "backend/shm/native/symmetric_memory.hpp"
#include "backend/shm/native/waiter.hpp"
#include "backend/shm/segment/segment.hpp"
#include "core/clock/clock.hpp"

namespace col::shm_backend {

class DirectWay {
 public:
  // Requires: all arguments outlive it. `sources`: room for a pointer to the memory of each rank.
  DirectWay(const std::string& group, Segment& segment, SymmetricHeap& heap, int rank, Attendant& attendant,
            std::vector<const std::byte*>& sources);

  // Says whether there is symmetric memory.
  bool has_memory() const { return heap_.any(); }
  // How the next call goes. Returns whether all ranks have to tell where their buffers are.
  bool begin(const Request& request);
  // By rank: what each tells in a meeting.
  std::span<Presence> presences() noexcept { return presences_; }

  // All have told. Each does its share, if all can reach what they need. `wait`: null where this rank must not wait.
  enum class Then {
    slots,            // it is not possible: the call goes through the slots
    confirms_writes,  // all meet again
    confirms_reads,   // the same; the call goes on with the slots if one rank could not read
  };
  Then share(const Request& request, WaitContext* wait);
  void on_writes_confirmed() noexcept { others_may_write_ = false; }
  bool all_have_read() { return cma_.all_have_read(presences_); }

  // The call has ended. Requires: is_timed().
  bool is_timed() const noexcept { return turn_.is_timed; }
  void end_trial() noexcept;
  // Collectives::give_up().
  void take_back() noexcept;

 private:
  template <class Work>
  class Loan;
  template <class Work>
  void borrow(const Work& work, WaitContext* wait);

  Segment& segment_;
  SymmetricHeap& heap_;
  const Tuning& tuning_;
  const int rank_, size_;
  Attendant& attendant_;
  std::vector<const std::byte*>& sources_;
  Cma cma_;
  KernelTrials kernel_trials_;
  std::vector<Presence> presences_;
  bool others_may_write_ = false;  // into this rank's memory
  // ---- The call that is under way
  bool may_be_symmetric_ = false, may_use_cma_ = false;
  KernelTrials::Turn turn_;
  core::Clock::time_point share_began_, share_ended_;  // of a timed turn, in this rank's own work
};

}  // namespace col::shm_backend

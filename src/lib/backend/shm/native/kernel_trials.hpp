// The way of a call that one copy by the kernel could serve: that one, or through slots (decision 0063).
//
// Which is faster depends on what nobody knows before: a peer that has read the data, which nobody has written since,
// has it in its own caches, and the kernel copies from there. What was computed just now comes from another cache in
// either way. So ranks try both ways, for each kind of call and power of two of its size: a few calls each, then many
// by the faster one. In calls that are timed all ranks meet first, so that their times hold no lateness of others; in
// the call after a trial they meet, too, tell their times, and decide alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include "backend/shm/native/lending.hpp"
#include "backend/shm/segment/tuning.hpp"

namespace col::shm_backend {

class KernelTrials {
 public:
  struct Turn {
    bool by_kernel = true, is_timed = false, decides = false;

    // A copy by the kernel needs to know where the others' memory is.
    bool meets() const noexcept { return by_kernel || is_timed || decides; }
  };

  // `size`: of the group. `before`: so many bytes of a kind of call go through slots first.
  KernelTrials(int size, std::size_t before) noexcept : size_(size), before_(before) {}

  // How the next call of that kind goes. All ranks ask for the same calls in the same order, and get the same turns.
  // The functions below are about this call.
  Turn next(const KernelCall& call);
  // How long a timed call took this rank since all had met, and in its last meeting.
  void took(WayTimes times) noexcept;
  // What this rank tells in a call that decides.
  const WayTimes& told() const noexcept { return kind_->best; }
  // Whether the kernel was faster, from what all ranks have told; as before if a trial of one way was not timed.
  bool decide(std::span<const Presence> all) noexcept;

  // Calls from one trial to the next: twice as many each time that it ends like the one before, and at once the most
  // where the kernel took half as long again.
  static constexpr std::uint32_t kFirstRound = 32, kLongestRound = 1024;

 private:
  struct Kind {
    explicit Kind(std::size_t before) noexcept : before_trials(before) {}

    std::size_t before_trials;
    std::uint32_t call = 0, round = kFirstRound;  // the next one in this round, and how many it has
    bool by_kernel = false, is_decided = false;   // what was faster
    WayTimes best = {};
  };

  const int size_;
  const std::size_t before_;
  std::map<std::pair<KernelShape, int>, Kind> kinds_;  // by shape, and bits of the size
  Kind* kind_ = nullptr;
};

}  // namespace col::shm_backend

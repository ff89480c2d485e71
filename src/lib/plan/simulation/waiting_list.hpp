// The messages that wait for a port, in the order in which they became ready. They leave from anywhere in it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/simulation/prefetch.hpp"

namespace col::plan::simulation {

class WaitingList {
 public:
  static constexpr std::uint32_t kNowhere = ~0U;

  bool empty() const noexcept { return waiting_ == 0; }
  // A number that stays the message's own, and that grows from one message to the next.
  std::uint32_t push(std::uint32_t other_port) {
    const std::size_t index = other_ports_.size();
    if (index % kBits == 0) waits_.push_back(0);
    waits_.back() |= std::uint64_t{1} << index % kBits;
    other_ports_.push_back(other_port);
    ++waiting_;
    return base_ + static_cast<std::uint32_t>(index);
  }
  // Requires: it waits.
  void remove(std::uint32_t place) {
    const std::uint32_t index = place - base_;
    waits_[index / kBits] &= ~(std::uint64_t{1} << index % kBits);
    if (--waiting_ == 0) return drop(waits_.size());
    if (place != first_) return;
    first_ = next(place);
    const std::size_t gone = (first_ - base_) / kBits;
    if (gone >= kMostGone && gone * 2 > waits_.size()) drop(gone);
  }
  std::uint32_t other_port(std::uint32_t place) const noexcept { return other_ports_[place - base_]; }

  // The first of those that are `place` or later; kNowhere if there is none.
  std::uint32_t next(std::uint32_t place) const noexcept {
    const std::size_t index = place - base_;
    for (std::size_t word = index / kBits; word < waits_.size(); ++word) {
      std::uint64_t bits = waits_[word];
      if (word == index / kBits) bits &= ~std::uint64_t{0} << index % kBits;
      if (bits != 0)
        return base_ + static_cast<std::uint32_t>(word * kBits) + static_cast<std::uint32_t>(std::countr_zero(bits));
    }
    return kNowhere;
  }
  // Requires: !empty().
  std::uint32_t first() const noexcept { return first_; }

  // The first, or this one's bit, is needed soon.
  void prefetch_first() const noexcept {
    if (empty()) return;
    simulation::prefetch(&other_ports_[first_ - base_]);
    prefetch(first_);
  }
  void prefetch(std::uint32_t place) const noexcept { simulation::prefetch(&waits_[(place - base_) / kBits]); }

 private:
  static constexpr std::size_t kBits = 64, kMostGone = 16;

  // Forgets those of the first words, which have all left.
  void drop(std::size_t words) {
    const std::size_t gone = std::min(words * kBits, other_ports_.size());
    other_ports_.erase(other_ports_.begin(), other_ports_.begin() + static_cast<std::ptrdiff_t>(gone));
    waits_.erase(waits_.begin(), waits_.begin() + static_cast<std::ptrdiff_t>(words));
    base_ += static_cast<std::uint32_t>(gone);
    if (other_ports_.empty()) first_ = base_;
  }

  std::vector<std::uint32_t> other_ports_;  // also of some that have left
  std::vector<std::uint64_t> waits_;        // a bit for each
  std::size_t waiting_ = 0;
  std::uint32_t base_ = 0;   // the number of the first that is here
  std::uint32_t first_ = 0;  // the first that waits, or the next that will
};

}  // namespace col::plan::simulation

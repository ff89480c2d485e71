// The messages that wait for a port, in the order in which they became ready. They leave from anywhere in it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace col::plan::simulation {

class WaitingList {
 public:
  static constexpr std::uint32_t kNowhere = ~0U;
  // Says all that is needed to take the message out of both lists without a look at it, which would mostly be a miss of
  // the cache.
  struct Entry {
    std::uint32_t other_port, message;
    std::uint32_t other_place = kNowhere;   // in the list of the other port
    std::uint32_t next_of_pair = kNowhere;  // the place here of the next that waits for the same two ports
  };

  bool empty() const noexcept { return waiting_ == 0; }
  // A number that stays the entry's own, and that grows from one entry to the next.
  std::uint32_t push(Entry entry) {
    const std::size_t index = entries_.size();
    if (index % kBits == 0) waits_.push_back(0);
    waits_.back() |= std::uint64_t{1} << index % kBits;
    entries_.push_back(entry);
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
  Entry& operator[](std::uint32_t place) noexcept { return entries_[place - base_]; }
  const Entry& operator[](std::uint32_t place) const noexcept { return entries_[place - base_]; }

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

  // The first entry, or this one's bit, is needed soon.
  void prefetch_first() const noexcept {
    if (!empty()) __builtin_prefetch(&(*this)[first_]);
  }
  void prefetch(std::uint32_t place) const noexcept { __builtin_prefetch(&waits_[(place - base_) / kBits], 1); }

 private:
  static constexpr std::size_t kBits = 64, kMostGone = 16;

  // Forgets the entries of the first words, which have all left.
  void drop(std::size_t words) {
    const std::size_t entries = std::min(words * kBits, entries_.size());
    entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(entries));
    waits_.erase(waits_.begin(), waits_.begin() + static_cast<std::ptrdiff_t>(words));
    base_ += static_cast<std::uint32_t>(entries);
    if (entries_.empty()) first_ = base_;
  }

  std::vector<Entry> entries_;        // of which some have left
  std::vector<std::uint64_t> waits_;  // a bit for each
  std::size_t waiting_ = 0;
  std::uint32_t base_ = 0;   // the number of the first entry that is here
  std::uint32_t first_ = 0;  // the first that waits, or the next that will
};

}  // namespace col::plan::simulation

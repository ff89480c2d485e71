// Queues of messages by pairs of numbers: two ranks, or two ports. It is a hash table with linear probing. It never
// holds more pairs than messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace col::plan::simulation {

inline constexpr std::uint32_t kNoMessage = ~0U;

struct PairQueue {
  std::uint64_t key = 0;
  std::uint32_t first = kNoMessage;  // kNoMessage: a free place of the table
  std::uint32_t last = kNoMessage;
};

class PairTable {
 public:
  PairTable() : places_(64) {}

  static std::uint64_t key(std::uint32_t from, std::uint32_t to) noexcept { return std::uint64_t{from} << 32 | to; }

  std::uint32_t first(std::uint64_t key) const noexcept {
    std::size_t i = home(key);
    while (places_[i].first != kNoMessage && places_[i].key != key) i = next(i);
    return places_[i].first;
  }

  // The queue of `key`, or a free place for it. The place is taken once `first` is set and added() is called. Valid
  // until the next added() or erase().
  PairQueue& at(std::uint64_t key) noexcept {
    std::size_t i = home(key);
    while (places_[i].first != kNoMessage && places_[i].key != key) i = next(i);
    places_[i].key = key;
    return places_[i];
  }

  void added() {
    if (++used_ * 2 > places_.size()) grow();
  }

  // Frees the place of `queue`, and closes the gap for keys that were probed past it.
  void erase(PairQueue& queue) noexcept {
    auto gap = static_cast<std::size_t>(&queue - places_.data());
    for (std::size_t i = next(gap); places_[i].first != kNoMessage; i = next(i)) {
      const std::size_t wanted = home(places_[i].key);
      // An entry whose home is in (gap, i] must not move before its home.
      if (((i - wanted) & mask()) < ((i - gap) & mask())) continue;
      places_[gap] = places_[i];
      gap = i;
    }
    places_[gap].first = kNoMessage;
    --used_;
  }

 private:
  std::size_t mask() const noexcept { return places_.size() - 1; }
  std::size_t next(std::size_t i) const noexcept { return (i + 1) & mask(); }
  std::size_t home(std::uint64_t key) const noexcept {
    return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15U) >> 32) & mask();
  }
  void grow() {
    std::vector<PairQueue> old(places_.size() * 2);
    old.swap(places_);
    for (const PairQueue& queue : old) {
      if (queue.first != kNoMessage) at(queue.key) = queue;
    }
  }

  std::vector<PairQueue> places_;  // a power of two of them
  std::size_t used_ = 0;
};

}  // namespace col::plan::simulation

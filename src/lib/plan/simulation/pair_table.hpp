// Queues of messages by pairs of ranks. Neighbours in the group are neighbours in memory, because ranks mostly list
// their peers one after the other: a row of the table has the queues from one rank to a few that follow each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/simulation/prefetch.hpp"

namespace col::plan::simulation {

inline constexpr std::uint32_t kNoMessage = ~0U;

struct PairQueue {
  std::uint32_t first = kNoMessage, last = kNoMessage;
};

// A hash table of rows, with linear probing. Rows stay once they are made.
class PairTable {
 public:
  PairTable() : places_(64) {}

  // Valid until the next call.
  PairQueue& at(std::uint32_t from, std::uint32_t to) {
    const std::uint64_t key = key_of(from, to);
    if (key == last_.key && last_.row != kFree) return queues_[last_.row * std::size_t{kRow} + to % kRow];
    const std::size_t i = place_of(key);
    if (places_[i].row == kFree) {
      places_[i] = {key, static_cast<std::uint32_t>(rows_++)};
      queues_.resize(rows_ * kRow);
    }
    last_ = places_[i];
    if (rows_ * 2 > places_.size()) grow();
    return queues_[last_.row * std::size_t{kRow} + to % kRow];
  }
  // Null if it was never asked for. Valid until the next call of at().
  const PairQueue* find(std::uint32_t from, std::uint32_t to) const noexcept {
    const Place& place = places_[place_of(key_of(from, to))];
    return place.row == kFree ? nullptr : &queues_[place.row * std::size_t{kRow} + to % kRow];
  }

  // The next stage is find().
  void prefetch(std::uint32_t from, std::uint32_t to) const noexcept {
    simulation::prefetch(&places_[home(key_of(from, to))]);
  }

 private:
  static constexpr std::uint32_t kRow = 32;
  static constexpr std::uint32_t kFree = ~0U;
  struct Place {
    std::uint64_t key = 0;
    std::uint32_t row = kFree;
  };

  static std::uint64_t key_of(std::uint32_t from, std::uint32_t to) noexcept {
    return std::uint64_t{from} << 32 | to / kRow;
  }
  std::size_t mask() const noexcept { return places_.size() - 1; }
  std::size_t home(std::uint64_t key) const noexcept {
    return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15U) >> 32) & mask();
  }
  std::size_t place_of(std::uint64_t key) const noexcept {
    std::size_t i = home(key);
    while (places_[i].row != kFree && places_[i].key != key) i = (i + 1) & mask();
    return i;
  }
  void grow() {
    std::vector<Place> old(places_.size() * 2);
    old.swap(places_);
    for (const Place& place : old) {
      if (place.row == kFree) continue;
      std::size_t i = home(place.key);
      while (places_[i].row != kFree) i = (i + 1) & mask();
      places_[i] = place;
    }
  }

  std::vector<Place> places_;  // a power of two of them
  std::vector<PairQueue> queues_;
  std::size_t rows_ = 0;
  Place last_;  // the one that was asked for last; ranks list several messages to one peer
};

}  // namespace col::plan::simulation

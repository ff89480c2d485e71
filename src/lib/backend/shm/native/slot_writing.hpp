// How one rank writes its slots, as far as its calls so far have shown.
//
// A step has a slot of its own, and uses a part of it: always the first, which so stays in near caches, or each time
// the next one (StoreChoice). What is best depends on how much a call moves, and on who reads.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "backend/shm/segment/layout.hpp"
#include "core/kernels/store_choice.hpp"

namespace col::shm_backend {

class SlotWriting {
 public:
  using Readers = core::StoreChoice::Readers;

  // For calls whose slots, of all steps together, have `bytes`; null for small ones, which near caches hold in any
  // case. `is_beyond`: what all caches hold.
  core::StoreChoice* choice(Readers readers, std::size_t bytes, bool is_beyond) noexcept {
    const int bits = static_cast<int>(std::bit_width(bytes));
    if (!tries || bits < kLeastBits) return nullptr;
    auto& choices = choices_[readers == Readers::others ? 0 : 1];
    return &choices[is_beyond ? kClasses : static_cast<std::size_t>(std::min(bits, kMostBits) - kLeastBits)];
  }

  // Where in the slot of that step the next `part` bytes onward are. Requires: part <= reach.
  std::size_t onward(std::uint64_t step, std::size_t part) noexcept {
    std::size_t& next = next_[Area::index(step)];
    const std::size_t offset = next + part <= reach ? next : 0;
    next = offset + part;
    return offset;
  }

  // False: all are written in the usual way.
  bool tries = true;
  // How much of each slot may be used, if it is more than a call needs: a power of two. Zero: as long as nobody has
  // taken memory for it.
  std::size_t reach = 0;

 private:
  // Each power of two from 16 KiB on has a choice of its own. From the last one on, calls differ in the number of their
  // steps alone.
  static constexpr int kLeastBits = 15, kMostBits = 21;
  static constexpr std::size_t kClasses = kMostBits - kLeastBits + 1;

  std::array<std::array<core::StoreChoice, kClasses + 1>, 2> choices_;
  std::array<std::size_t, kSlots> next_{};
};

}  // namespace col::shm_backend

// How one rank writes its slots, as far as its calls so far have shown.
//
// A step has a slot of its own, and uses a part of it: always the first, which so stays in near caches, or each time
// the next one (StoreChoice). What is best depends on how much a call moves, and on who reads.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include "core/kernels/store_choice.hpp"

namespace col::shm_backend {

class SlotWriting {
 public:
  using Readers = core::StoreChoice::Readers;

  // For calls in which this rank puts `bytes`; null for small ones, which near caches hold in any case. `is_beyond`:
  // what all caches hold.
  core::StoreChoice* choice(Readers readers, std::size_t bytes, bool is_beyond) noexcept {
    const int bits = static_cast<int>(std::bit_width(bytes));
    if (bits < kLeastBits) return nullptr;
    auto& choices = choices_[readers == Readers::others ? 0 : 1];
    return &choices[is_beyond ? kClasses : static_cast<std::size_t>(std::min(bits, kMostBits) - kLeastBits)];
  }

  // How much of each slot calls that the caches hold may use, if it is more than they need: a power of two. Zero: as
  // long as nobody has taken memory for it.
  std::size_t reach = 0;

 private:
  // Each power of two from 16 KiB on has a choice of its own. From the last one on, calls differ in the number of their
  // steps alone.
  static constexpr int kLeastBits = 15, kMostBits = 21;
  static constexpr std::size_t kClasses = kMostBits - kLeastBits + 1;

  std::array<std::array<core::StoreChoice, kClasses + 1>, 2> choices_;
};

}  // namespace col::shm_backend

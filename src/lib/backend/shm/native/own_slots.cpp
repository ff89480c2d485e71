#include "backend/shm/native/own_slots.hpp"

#include <algorithm>
#include <bit>
#include <exception>

#include "backend/shm/segment/memory_room.hpp"
#include "core/log.hpp"

namespace col::shm_backend {

void OwnSlots::widen(std::uint64_t bytes, std::size_t part) noexcept {
  const Tuning& tuning = segment_.tuning();
  const std::size_t wide = std::bit_floor(tuning.wide_slot);
  if (before_wide_ == 0 || tuning.crowd > 1 || part >= wide) return;
  before_wide_ -= std::min(before_wide_, bytes);
  if (before_wide_ != 0) return;
  try {
    // All ranks take as much, and others may need memory more.
    if (const auto lack = lack_of_memory(2 * static_cast<std::size_t>(segment_.size()) * kSlots * wide))
      throw Error(ErrorCode::resource, *lack);
    claim(wide);
    writing.reach = wide;
  } catch (const std::exception& error) {
    core::log::info("group '{}': calls that the caches hold use {} KiB of each slot, and not {}: {}", group_,
                    tuning.slot >> 10, wide >> 10, error.what());
  }
}

}  // namespace col::shm_backend

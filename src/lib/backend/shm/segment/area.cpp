#include "backend/shm/segment/area.hpp"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <new>

namespace col::shm_backend {
namespace {

constexpr std::size_t kAllSlots = std::size_t{32} << 20;
constexpr std::size_t kSmallestSlot = 16 << 10;
constexpr std::size_t kLargestSlot = 128 << 10;
constexpr std::size_t kUsualCache = std::size_t{1} << 20;
// All slots of a rank fill a quarter of its second-level cache, which also has to hold what it reads of others.
constexpr std::size_t kSlotsInCache = 16;

}  // namespace

std::size_t Area::slot_bytes_for(int size) noexcept {
  const auto ranks = static_cast<std::size_t>(size);
  const long reported = ::sysconf(_SC_LEVEL2_CACHE_SIZE);  // 0 or -1 where the kernel does not tell
  const std::size_t cache = reported > 0 ? static_cast<std::size_t>(reported) : kUsualCache;
  // One element at least of each rank's block.
  const std::size_t least = std::max(kSmallestSlot, std::bit_ceil(ranks * kLargestElement));
  const std::size_t wanted = std::bit_floor(std::min(kAllSlots / (kSlots * ranks), cache / kSlotsInCache));
  return std::clamp(wanted, least, std::max(least, kLargestSlot));
}

std::size_t Area::bytes_for(int size, std::size_t slot_bytes) noexcept {
  return common_bytes(size) + static_cast<std::size_t>(size) * Area(nullptr, size, slot_bytes).part_bytes();
}

void Area::construct() const noexcept {
  new (base_) AreaHeader{};
  for (int rank = 0; rank < static_cast<int>(size_); ++rank) new (&done(rank)) StepsDone{};
}

void Area::construct_part(int rank) const noexcept {
  for (std::uint64_t step = 0; step < kSlots; ++step) new (&slot(rank, step)) SlotHeader{};
}

}  // namespace col::shm_backend

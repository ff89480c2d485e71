#include "backend/shm/segment/pool.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace col::shm_backend {
namespace {

constexpr std::size_t kUnitPage = 4096;
// How many of the largest groups find room at the same time; fewer where that would be more addresses than this.
constexpr std::size_t kLargestGroups = 16, kMostPool = std::size_t{8} << 30;

// Zeros them. Their memory goes back to the machine, unless the kernel refuses.
void clear(std::byte* begin, std::size_t bytes) noexcept {
  if (bytes > 0 && ::madvise(begin, bytes, MADV_REMOVE) != 0) std::memset(begin, 0, bytes);
}

std::size_t pages_of(std::size_t bytes) noexcept {
  return (bytes + kUnitPage - 1) / kUnitPage;
}

}  // namespace

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

std::size_t Pool::bytes_for(std::size_t bytes) noexcept {
  const std::size_t groups = std::clamp<std::size_t>(kMostPool / bytes, 1, kLargestGroups);
  // A group begins and ends with a whole unit, and has some pages that a segment with a mapping of its own has not.
  const std::size_t units = kUnits / groups - 1;
  const std::size_t unit = pages_of((bytes + units - 1) / units) * kUnitPage;
  return pages_of((kUnits + 1) * sizeof(State)) * kUnitPage + kUnits * unit;
}

Pool::Pool(std::byte* base, std::size_t bytes) noexcept : base_(base), bytes_(bytes) {
  unit_bytes_ = (bytes - pages_of((kUnits + 1) * sizeof(State)) * kUnitPage) / kUnits;
}

bool Pool::holds(std::size_t place, std::size_t bytes) const noexcept {
  return exists() && place >= bytes_ - kUnits * unit_bytes_ && place < bytes_ && bytes <= bytes_ - place;
}

std::size_t Pool::kept_pages(std::size_t unit_of_run, std::size_t kept) const noexcept {
  const std::size_t before = unit_of_run * unit_bytes_;
  return kept <= before ? 0 : pages_of(std::min(kept - before, unit_bytes_));
}

std::optional<std::size_t> Pool::take(std::size_t bytes, std::size_t kept) const noexcept {
  if (!exists()) return std::nullopt;
  const std::size_t wanted = units_of(bytes);
  std::array<std::uint32_t, kUnits> dirty;
  std::size_t begin = 0, taken = 0;
  while (begin + wanted <= kUnits) {
    State& unit = state(begin + taken);
    std::uint32_t seen = unit.load(std::memory_order_relaxed);
    // acquire: pairs with give_back(), after the last touch of the group that had it before.
    while (seen != kTaken &&
           !unit.compare_exchange_weak(seen, kTaken, std::memory_order_acquire, std::memory_order_relaxed)) {
    }
    if (seen == kTaken) {
      for (std::size_t i = 0; i < taken; ++i) state(begin + i).store(dirty[i], std::memory_order_release);
      begin += taken + 1;
      taken = 0;
      continue;
    }
    dirty[taken++] = seen;
    if (taken < wanted) continue;
    after_leavers();
    const std::size_t place = bytes_ - kUnits * unit_bytes_ + begin * unit_bytes_;
    for (std::size_t i = 0; i < wanted; ++i) {
      const std::size_t clean = kept_pages(i, kept);
      if (dirty[i] > clean) clear(at(place) + i * unit_bytes_ + clean * kUnitPage, (dirty[i] - clean) * kUnitPage);
    }
    return place;
  }
  return std::nullopt;
}

void Pool::give_back(std::size_t place, std::size_t bytes, std::size_t kept, bool used) const noexcept {
  const std::size_t begin = (place - (bytes_ - kUnits * unit_bytes_)) / unit_bytes_;
  const std::size_t first = pages_of(kept) * kUnitPage;
  if (used && bytes > first) clear(at(place) + first, pages_of(bytes - first) * kUnitPage);
  for (std::size_t i = 0; i < units_of(bytes); ++i) {
    // release: see take().
    state(begin + i).store(static_cast<std::uint32_t>(kept_pages(i, kept)), std::memory_order_release);
  }
}

}  // namespace col::shm_backend

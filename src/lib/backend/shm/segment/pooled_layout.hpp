// Where things are in a segment that lies in a pool, as bytes from its begin: see layout.hpp.
#pragma once

#include <cstddef>

#include <col/channel.hpp>

#include "backend/capabilities.hpp"
#include "backend/shm/segment/layout.hpp"
#include "backend/shm/segment/segment.hpp"

namespace col::shm_backend {

class PooledLayout {
 public:
  explicit PooledLayout(int size) noexcept : size_(size), ranks_(static_cast<std::size_t>(size)) {}

  std::size_t area_at() const noexcept { return sizeof(SegmentHeader) + ranks_ * sizeof(RankPlace); }
  // What comes before is zeroed for each new group; all ranks touch it in their first call.
  std::size_t words_at() const noexcept { return whole_pages(area_at() + Area::headers_bytes(size_)); }
  std::size_t words_at(int rank) const noexcept {
    return words_at() + static_cast<std::size_t>(rank) * backend::CommonMemoryOps::kLongestFarewell;
  }
  // What comes before stays in memory for the next group.
  std::size_t indices_at() const noexcept { return whole_pages(words_at(size_)); }
  std::size_t rings_at() const noexcept { return indices_at() + whole_pages(pairs() * sizeof(RingIndices)); }
  std::size_t slots_at() const noexcept { return rings_at() + pairs() * Segment::ring_bytes_for(size_); }
  std::size_t bytes(std::size_t slot_bytes) const noexcept { return slots_at() + ranks_ * kSlots * slot_bytes; }

 private:
  static constexpr std::size_t whole_pages(std::size_t bytes) noexcept {
    constexpr std::size_t kPage = kSlotsHeader;
    return (bytes + kPage - 1) / kPage * kPage;
  }
  std::size_t pairs() const noexcept { return ranks_ * (ranks_ - 1); }

  const int size_;
  const std::size_t ranks_;
};

}  // namespace col::shm_backend

// The memory of this rank's slots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "backend/shm/native/slot_writing.hpp"
#include "backend/shm/segment/segment.hpp"

namespace col::shm_backend {

class OwnSlots {
 public:
  // Requires: the arguments outlive it.
  OwnSlots(const std::string& group, Segment& segment, int rank)
      : group_(group), segment_(segment), rank_(rank), claimed_(segment.first_slots()) {
    writing.tries = segment.tuning().tries != 0;
  }

  // Takes so many bytes of each slot. Throws resource.
  void claim(std::size_t bytes) { claimed_ = segment_.claim_slots(rank_, claimed_, bytes); }
  // Takes the memory for going onward, once calls have wanted it for some time. `bytes`: of all steps of the call,
  // `part`: of the part of a slot that it uses. Not where ranks share a processor, which then has all slots in its
  // cache. Calls work without it.
  void widen(std::uint64_t bytes, std::size_t part) noexcept;

  SlotWriting writing;

 private:
  // After so many bytes through slots, memory that makes them faster is worth its taking.
  static constexpr std::uint64_t kBeforeWide = std::uint64_t{8} << 20;

  const std::string& group_;
  Segment& segment_;
  const int rank_;
  std::size_t claimed_;  // bytes of each slot that this rank may write
  std::uint64_t before_wide_ = kBeforeWide;
};

}  // namespace col::shm_backend

// Calls that a rank leaves in its part of the control page for other ranks to compare, by number: see
// group/diagnosis/announced.hpp.
#pragma once

#include <cstdint>
#include <optional>

#include <col/job.hpp>

#include "core/job/page.hpp"

namespace col::core {

struct AnnouncedCalls {
  // announced() tells of it as long as no other call has its place. Numbers begin at 1.
  static void announce(RankRecord& record, std::uint64_t stream, std::uint64_t number, std::uint64_t hash) noexcept {
    AnnouncedCall& place = place_of(*record.recorder_, stream, number);
    // release: who reads one of these words of a later call reads its 0, or its number, after that.
    place.number.store(0, std::memory_order_release);
    place.stream.store(stream, std::memory_order_release);
    place.hash.store(hash, std::memory_order_release);
    place.number.store(number, std::memory_order_release);
  }

  static std::optional<std::uint64_t> announced(const RankRecord& record, std::uint64_t stream,
                                                std::uint64_t number) noexcept {
    const AnnouncedCall& place = place_of(*record.recorder_, stream, number);
    if (place.number.load(std::memory_order_acquire) != number ||
        place.stream.load(std::memory_order_acquire) != stream)
      return std::nullopt;
    const std::uint64_t hash = place.hash.load(std::memory_order_acquire);
    const bool is_whole = place.number.load(std::memory_order_acquire) == number &&
                          place.stream.load(std::memory_order_acquire) == stream;
    return is_whole ? std::optional(hash) : std::nullopt;
  }

 private:
  // The calls of a stream in a row.
  static AnnouncedCall& place_of(RecorderLayout& recorder, std::uint64_t stream, std::uint64_t number) noexcept {
    return recorder.announced[(stream + number) % recorder.announced.size()];
  }
};

}  // namespace col::core

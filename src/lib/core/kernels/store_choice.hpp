// How a rank writes what another one reads next: into whole lines, which the reader finds in a cache that both share,
// or past the caches.
//
// Where the two processors share no cache, a line that the reader has had is written up to five times as slowly, and
// memory is the faster way. No machine says which of the two it is, and one that moves its processors changes it in
// seconds (docs/performance.md). So each rank times some of its copies. It needs to agree with nobody: the bits are
// equal.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "core/kernels/fold.hpp"
#include "core/kernels/to_others.hpp"

namespace col::core {

class StoreChoice {
 public:
  // Who reads what is written past the caches, and so fetches it from memory: others, while the writer goes on, or the
  // writer too, as much of theirs.
  enum class Readers { others, all };

  // The better way, as far as it is known.
  Stores best(Readers readers) const noexcept {
    const std::uint64_t cached = ways_[kCached].cost(), streaming = ways_[kStreaming].cost();
    // Clearly faster: half as fast again.
    const std::uint64_t paid = streaming * (readers == Readers::all ? 2 : 1);
    return streaming != 0 && paid * 3 < cached * 2 ? Stores::streaming : Stores::cached;
  }
  // Copies as copy_to_others() in that way, and now and then in the other one, to know it.
  void copy(std::byte* to, const std::byte* from, std::size_t bytes, Readers readers) noexcept {
    if (bytes < kLeastTimed) return copy_to_others(to, from, bytes);
    const Next next = this->next(readers);
    if (!next.is_timed) return copy_to_others(to, from, bytes, next.stores);
    const auto begin = std::chrono::steady_clock::now();
    copy_to_others(to, from, bytes, next.stores);
    const auto time = std::chrono::steady_clock::now() - begin;
    took(next.stores, static_cast<std::uint64_t>(std::chrono::nanoseconds(time).count()), bytes);
  }

  // ---- The parts of copy()
  struct Next {
    Stores stores;
    bool is_timed;
  };
  Next next(Readers readers) noexcept {
    if (!ways_[kCached].is_known()) return {Stores::cached, true};
    if (!ways_[kStreaming].is_known()) return {Stores::streaming, true};
    const Stores better = best(readers);
    const std::uint64_t copy = ++copies_;
    if (copy % kTried != 0) return {better, copy % kTimed == 0};
    return {better == Stores::cached ? Stores::streaming : Stores::cached, true};
  }
  void took(Stores stores, std::uint64_t nanoseconds, std::size_t bytes) noexcept {
    Way& way = ways_[stores == Stores::cached ? kCached : kStreaming];
    way = {.last = nanoseconds * kUnit / bytes + 1, .before = way.last};
  }

  static constexpr std::size_t kLeastTimed = 16384;
  static constexpr std::uint64_t kTimed = 8, kTried = 64;  // one copy in so many

 private:
  static constexpr std::uint64_t kUnit = std::uint64_t{1} << 20;  // costs are for so many bytes
  static constexpr std::size_t kCached = 0, kStreaming = 1;

  // Of the last two times the lesser one: a rank that lost its processor in one of them says nothing about memory.
  struct Way {
    std::uint64_t last = 0, before = 0;  // zero: not known

    bool is_known() const noexcept { return before != 0; }
    std::uint64_t cost() const noexcept { return is_known() ? std::min(last, before) : 0; }
  };
  std::array<Way, 2> ways_{};
  std::uint64_t copies_ = 0;
};

}  // namespace col::core

// What the writer and the reader of plan files share: the names of members, and the conversion of chunks to elements.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include <col/plan.hpp>

namespace col::plan {

inline constexpr std::size_t kPlanVersion = 1;
// The largest number of elements in a file. Every JSON reader keeps whole numbers up to here exact.
inline constexpr std::size_t kMostElements = std::size_t{1} << 53;
// The largest number of chunks in one buffer.
inline constexpr std::size_t kMostChunks = std::size_t{1} << 20;

// `count` elements cut into `chunks`, again and again: chunk k of any buffer is as long as chunk k mod `chunks` of the
// first block. So a message keeps its length in every buffer, as long as its chunk has the same number modulo `chunks`.
class Cut {
 public:
  Cut(std::size_t count, std::size_t chunks) noexcept
      : chunks_(chunks), count_(count), short_(count / chunks), longer_(count % chunks) {}
  // Where chunk k begins. Requires: fits(k).
  std::size_t begin(std::size_t k) const noexcept {
    const std::size_t within = k % chunks_;
    return k / chunks_ * count_ + within * short_ + (within < longer_ ? within : longer_);
  }
  // Whether the first k chunks have at most kMostElements elements.
  bool fits(std::size_t k) const noexcept { return k < chunks_ || count_ <= kMostElements / (k / chunks_ + 1); }
  Slice elements(const Slice& slice) const noexcept {
    const std::size_t first = begin(slice.offset);
    return {slice.buffer, first, begin(slice.offset + slice.count) - first};
  }

 private:
  std::size_t chunks_, count_, short_, longer_;
};

}  // namespace col::plan

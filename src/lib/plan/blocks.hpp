// How a vector is cut: into one block for each rank, into segments, or into pieces of one run of memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <col/plan.hpp>

namespace col::plan {

class Blocks {
 public:
  // `total` elements in `parts` blocks. Their counts differ by at most one, and the longer blocks come first.
  static Blocks even(std::size_t total, std::size_t parts) noexcept {
    Blocks blocks;
    blocks.parts_ = parts;
    blocks.short_ = total / parts;
    blocks.longer_ = total % parts;
    return blocks;
  }
  // `parts` blocks of `count` elements each.
  static Blocks equal(std::size_t count, std::size_t parts) noexcept { return even(count * parts, parts); }
  // Blocks of these counts at these displacements. The arrays still belong to the caller.
  static Blocks listed(std::span<const std::size_t> counts, std::span<const std::size_t> displacements) noexcept {
    Blocks blocks;
    blocks.parts_ = counts.size();
    blocks.counts_ = counts;
    blocks.displacements_ = displacements;
    return blocks;
  }
  // The blocks of a request's input or output, for v-forms and other forms.
  static Blocks of_input(const PlanRequest& request) noexcept {
    if (!request.in_counts.empty()) return listed(request.in_counts, request.in_displacements);
    return equal(request.count, static_cast<std::size_t>(request.size));
  }
  static Blocks of_output(const PlanRequest& request) noexcept {
    if (!request.out_counts.empty()) return listed(request.out_counts, request.out_displacements);
    return equal(request.count, static_cast<std::size_t>(request.size));
  }

  std::size_t parts() const noexcept { return parts_; }
  std::size_t count(std::size_t i) const noexcept {
    return counts_.empty() ? short_ + (i < longer_ ? 1 : 0) : counts_[i];
  }
  std::size_t offset(std::size_t i) const noexcept {
    return counts_.empty() ? i * short_ + std::min(i, longer_) : displacements_[i];
  }
  // Block i in `buffer`, if the whole vector begins at element `base`.
  Slice slice(Buffer buffer, std::size_t i, std::size_t base = 0) const noexcept {
    return {buffer, base + offset(i), count(i)};
  }
  // The block of a rank.
  Slice slice(Buffer buffer, int rank) const noexcept { return slice(buffer, static_cast<std::size_t>(rank)); }
  // The longest block.
  std::size_t largest() const noexcept {
    if (!counts_.empty()) return *std::max_element(counts_.begin(), counts_.end());
    return short_ + (longer_ > 0 ? 1 : 0);
  }
  // Blocks [first, last) as one slice. Requires: not listed(), because listed blocks need not be neighbours.
  Slice range(Buffer buffer, std::size_t first, std::size_t last, std::size_t base = 0) const noexcept {
    return {buffer, base + offset(first), offset(last) - offset(first)};
  }

 private:
  std::size_t parts_ = 1;
  std::size_t short_ = 0;   // the shorter of the two counts
  std::size_t longer_ = 0;  // how many blocks have one element more
  std::span<const std::size_t> counts_ = {}, displacements_ = {};
};

// 64 KiB of float32. This is long enough that a message's fixed cost is small, and short enough to stay in a core's
// cache between arrival and departure.
inline constexpr std::size_t kDefaultSegment = 16384;

// `total` elements in segments of at most parameters.segment elements, as even as possible. At least one segment, even
// if it is empty.
inline Blocks segments(const PlanRequest& request, std::size_t total) noexcept {
  const std::size_t wanted = request.parameters.segment == 0 ? kDefaultSegment : request.parameters.segment;
  return Blocks::even(total, std::max<std::size_t>(1, total / wanted + (total % wanted != 0 ? 1 : 0)));
}

// Where pieces begin that are stored one after the other. Cheap to copy.
class Packed {
 public:
  Packed() : Packed(0, [](std::size_t) { return std::size_t{0}; }) {}
  // `parts` pieces; piece i has count(i) elements.
  template <class Count>
  Packed(std::size_t parts, Count count) {
    auto starts = std::make_shared<std::vector<std::size_t>>(parts + 1);
    for (std::size_t i = 0; i < parts; ++i) (*starts)[i + 1] = (*starts)[i] + count(i);
    starts_ = std::move(starts);
  }

  std::size_t parts() const noexcept { return starts_->size() - 1; }
  std::size_t start(std::size_t i) const noexcept { return (*starts_)[i]; }
  std::size_t total() const noexcept { return starts_->back(); }
  // Elements of pieces [first, last).
  std::size_t count(std::size_t first, std::size_t last) const noexcept { return start(last) - start(first); }
  // Pieces [first, last), if the first of all pieces begins at `region`.
  Slice range(const Slice& region, std::size_t first, std::size_t last) const noexcept {
    return region.part(start(first), count(first, last));
  }

 private:
  std::shared_ptr<const std::vector<std::size_t>> starts_;  // shared: plans are copied, this never changes
};

// Where all blocks begin, if they are one after the other in memory; otherwise nothing. Displacements may differ
// between ranks, so only this rank may use the answer.
inline std::optional<std::size_t> run_of(const Blocks& blocks) noexcept {
  std::optional<std::size_t> begin;
  std::size_t next = 0;
  for (std::size_t i = 0; i < blocks.parts(); ++i) {
    if (blocks.count(i) == 0) continue;  // its place does not matter
    if (begin && blocks.offset(i) != next) return std::nullopt;
    if (!begin) begin = blocks.offset(i);
    next = blocks.offset(i) + blocks.count(i);
  }
  return begin.value_or(0);
}

}  // namespace col::plan

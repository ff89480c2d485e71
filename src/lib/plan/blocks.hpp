// How a vector is cut into one block for each rank (or segment).
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

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

}  // namespace col::plan

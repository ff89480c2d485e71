// A fold in the order of a tree: Order::tree, where each rank gives one contribution.
#pragma once

#include <cstddef>
#include <span>

#include <col/types.hpp>

#include "core/kernels/fold.hpp"

namespace col::core {

// As fold(), but neighbours of `inputs` are combined level by level, and an odd last one goes up as it is. Requires:
// ranks > 0, more than one input, and elements of at most kMaxReducedBytes.
void tree_fold(const Op& op, DType dtype, bool wide, std::span<const std::byte* const> inputs, std::size_t ranks,
               FoldTarget first, FoldTarget second, std::size_t count);

// True if a tree over so many is the fold from left to right.
constexpr bool is_left_fold(std::size_t inputs) noexcept {
  return inputs <= 3;
}

}  // namespace col::core

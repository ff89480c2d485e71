#include "core/kernels/tree_fold.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "core/kernels/mixed.hpp"
#include "core/kernels/reduce.hpp"

namespace col::core {
namespace {

// The sums between leaves and root stay in the first cache; a few bytes do not pay for so much room on the stack.
constexpr std::size_t kTreeBlockBytes = 8192, kFewTreeBytes = 256;
// A level for each power of two of inputs: no segment has as many ranks.
constexpr std::size_t kMostLevels = 16;

template <std::size_t kBlock>
class TreeFold {
 public:
  TreeFold(const Op& op, DType dtype, bool wide, std::span<const std::byte* const> inputs)
      : op_(op),
        dtype_(dtype),
        inputs_(inputs),
        wide_inputs_(wide),
        // A user's function works on the user's type.
        wide_sums_(op.kind() != Op::Kind::user),
        in_bytes_(size_of(wide ? accumulation_type(dtype) : dtype)) {}

  // Elements of a block.
  std::size_t most() const noexcept {
    return kBlock / std::max(in_bytes_, size_of(wide_sums_ ? accumulation_type(dtype_) : dtype_));
  }

  // The result of `n` elements of each input from `begin` on. The last sum goes straight to the targets, divided and
  // rounded on its way, but where only one of its operands is narrow.
  void fold(std::size_t begin, std::size_t n, std::size_t ranks, FoldTarget first, FoldTarget second) {
    const std::size_t middle = std::bit_floor(inputs_.size() - 1);
    const Value left = fold(0, middle, 0, begin, n);
    const Value right = fold(middle, inputs_.size(), 1, begin, n);
    if (left.is_wide == right.is_wide || accumulation_type(dtype_) == dtype_) {
      const std::array<const std::byte*, 2> both = {left.data, right.data};
      return core::fold(op_, dtype_, left.is_wide, both, ranks, first, second, n);
    }
    reduce_mixed(op_, dtype_, left.is_wide, left.data, right.is_wide, right.data, true, blocks_[0].data(), n);
    const std::array<const std::byte*, 1> sum = {blocks_[0].data()};
    core::fold(op_, dtype_, true, sum, ranks, first, second, n);
  }

 private:
  struct Value {
    const std::byte* data;
    bool is_wide;
  };
  // Inputs [first, last) into the block of that level; a single one stays where it is.
  Value fold(std::size_t first, std::size_t last, std::size_t level, std::size_t begin, std::size_t n) {
    if (last - first == 1) return {inputs_[first] + begin * in_bytes_, wide_inputs_};
    const std::size_t middle = first + std::bit_floor(last - first - 1);
    const Value left = fold(first, middle, level, begin, n);
    const Value right = fold(middle, last, level + 1, begin, n);
    reduce_mixed(op_, dtype_, left.is_wide, left.data, right.is_wide, right.data, wide_sums_, blocks_[level].data(), n);
    return {blocks_[level].data(), wide_sums_};
  }

  const Op& op_;
  DType dtype_;
  std::span<const std::byte* const> inputs_;
  bool wide_inputs_, wide_sums_;
  std::size_t in_bytes_;
  alignas(64) std::array<std::array<std::byte, kBlock>, kMostLevels> blocks_;  // not initialised
};

template <std::size_t kBlock>
[[gnu::noinline]] void fold_in_blocks(const Op& op, DType dtype, bool wide, std::span<const std::byte* const> inputs,
                                      std::size_t ranks, FoldTarget first, FoldTarget second, std::size_t count) {
  TreeFold<kBlock> tree(op, dtype, wide, inputs);
  const auto from = [size = size_of(dtype)](FoldTarget target, std::size_t begin) {
    return FoldTarget{target.data == nullptr ? nullptr : target.data + begin * size, target.stores};
  };
  for (std::size_t begin = 0; begin < count; begin += tree.most())
    tree.fold(begin, std::min(tree.most(), count - begin), ranks, from(first, begin), from(second, begin));
}

}  // namespace

void tree_fold(const Op& op, DType dtype, bool wide, std::span<const std::byte* const> inputs, std::size_t ranks,
               FoldTarget first, FoldTarget second, std::size_t count) {
  const bool is_short = count * size_of(accumulation_type(dtype)) <= kFewTreeBytes;
  (is_short ? fold_in_blocks<kFewTreeBytes> : fold_in_blocks<kTreeBlockBytes>)(op, dtype, wide, inputs, ranks, first,
                                                                               second, count);
}

}  // namespace col::core

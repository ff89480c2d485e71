#include "core/kernels/tree_fold.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "core/kernels/mixed.hpp"
#include "core/kernels/reduce.hpp"

namespace col::core {
namespace {

// The sums between leaves and root stay in the first cache.
constexpr std::size_t kTreeBlockBytes = 4096;
// A level for each power of two of inputs.
constexpr std::size_t kMostLevels = 24;

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
    return kTreeBlockBytes / std::max(in_bytes_, size_of(wide_sums_ ? accumulation_type(dtype_) : dtype_));
  }

  // The value of `n` elements of each input from `begin` on, before the last step of the reduction.
  struct Value {
    const std::byte* data;
    bool is_wide;
  };
  Value fold(std::size_t begin, std::size_t n) { return fold(0, inputs_.size(), 0, begin, n); }

 private:
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
  alignas(64) std::array<std::array<std::byte, kTreeBlockBytes>, kMostLevels> blocks_;  // not initialised
};

}  // namespace

void tree_fold(const Op& op, DType dtype, bool wide, std::span<const std::byte* const> inputs, std::size_t ranks,
               FoldTarget first, FoldTarget second, std::size_t count) {
  const std::size_t size = size_of(dtype);
  alignas(64) std::array<std::byte, kTreeBlockBytes> result;
  TreeFold tree(op, dtype, wide, inputs);
  for (std::size_t begin = 0; begin < count;) {
    const std::size_t n = std::min(tree.most(), count - begin);
    const auto value = tree.fold(begin, n);
    finish(op, ranks, dtype, value.is_wide, value.data, result.data(), n);
    for (const FoldTarget& target : {first, second}) {
      if (target.data != nullptr) copy(target.data + begin * size, result.data(), n * size, target.stores);
    }
    begin += n;
  }
}

}  // namespace col::core

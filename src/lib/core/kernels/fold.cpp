#include "core/kernels/fold.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include <fmt/format.h>

#include <col/error.hpp>

#include "core/kernels/few_fold.hpp"
#include "core/kernels/instructions.hpp"
#include "core/kernels/kernel_table.hpp"
#include "core/kernels/reduce.hpp"

namespace col::core {
namespace {

// Partial results that pass through memory do so in blocks that stay in the first cache.
constexpr std::size_t kBlockBytes = 16384;

FoldTarget from_byte(FoldTarget target, std::size_t offset) {
  return {target.data == nullptr ? nullptr : target.data + offset, target.stores};
}

void copy_to(const KernelTable& kernels, const std::byte* from, FoldTarget first, FoldTarget second,
             std::size_t bytes) {
  if (second.data == nullptr && first.stores == Stores::cached) {
    if (first.data != from) std::memcpy(first.data, from, bytes);
    return;
  }
  // Of one input every operator makes a copy.
  kernels.folds[static_cast<std::size_t>(ReduceOp::bor)][static_cast<std::size_t>(DType::uint8)](
      {&from, 1, 0, first, second, 0, bytes});
}

// Calls work(begin, count, block) for blocks of elements that fit `block`, which it may use freely. Then copies the
// content of `block`, or what `work` returns a pointer to, to the targets.
template <class Work>
void by_blocks(const KernelTable& kernels, std::size_t element_bytes, FoldTarget first, FoldTarget second,
               std::size_t count, Work work) {
  alignas(64) std::array<std::byte, kBlockBytes> block;
  const std::size_t per_block = kBlockBytes / element_bytes;
  for (std::size_t begin = 0; begin < count; begin += per_block) {
    const std::size_t n = std::min(per_block, count - begin);
    const std::byte* const result = work(begin, n, block.data());
    copy_to(kernels, result, from_byte(first, begin * element_bytes), from_byte(second, begin * element_bytes),
            n * element_bytes);
  }
}

void fold_user(const KernelTable& kernels, const Op& op, DType dtype, std::span<const std::byte* const> inputs,
               FoldTarget first, FoldTarget second, std::size_t count) {
  const Op::UserFunction& function = op.user_function();
  const std::size_t size = size_of(dtype);
  by_blocks(kernels, size, first, second, count, [&](std::size_t begin, std::size_t n, std::byte* block) {
    const std::byte* left = inputs[0] + begin * size;
    for (std::size_t k = 1; k < inputs.size(); ++k) {
      // The last result goes where it belongs. Those before it do not: a target may be an input still to be read.
      const bool direct = k + 1 == inputs.size() && first.stores == Stores::cached;
      std::byte* const result = direct ? first.data + begin * size : block;
      function(left, inputs[k] + begin * size, result, n, dtype);
      left = result;
    }
    return left;
  });
}

// Sums of integers are divided in a pass of their own, while they are in the first cache.
void fold_integer_average(const KernelTable& kernels, DType dtype, std::span<const std::byte* const> inputs,
                          std::size_t ranks, FoldTarget first, FoldTarget second, std::size_t count) {
  const FoldKernel sum = kernels.folds[static_cast<std::size_t>(ReduceOp::sum)][static_cast<std::size_t>(dtype)];
  const DivideKernel divide = kernels.divisions[static_cast<std::size_t>(dtype)];
  by_blocks(kernels, size_of(dtype), first, second, count, [&](std::size_t begin, std::size_t n, std::byte* block) {
    sum({inputs.data(), inputs.size(), begin, {block}, {}, 0, n});
    divide(ranks, block, block, n);
    return block;
  });
}

bool is_average(const Op& op) noexcept {
  return op.kind() == Op::Kind::builtin && op.reduce_op() == ReduceOp::avg;
}

// The kernel that does a whole fold in one pass; null if there is none.
FoldKernel one_pass(const KernelTable& kernels, const Op& op, DType dtype, bool wide, std::size_t inputs,
                    bool divides) noexcept {
  const auto row = static_cast<std::size_t>(op.reduce_op());
  const auto column = static_cast<std::size_t>(dtype);
  if (op.kind() == Op::Kind::user || row >= kReduceOpCount || column >= kDTypeCount) return nullptr;
  const bool narrow = is_narrow(dtype);
  if (wide && narrow) return kernels.wide_folds[row][column];
  if (divides ? row_of(dtype).is_integer() : inputs == 1) return nullptr;
  return kernels.folds[row][column];
}

// What takes more than one pass, is a copy, or is refused.
[[gnu::noinline]] void fold_otherwise(const KernelTable& kernels, const Op& op, DType dtype, bool wide,
                                      std::span<const std::byte* const> inputs, std::size_t ranks, FoldTarget first,
                                      FoldTarget second, std::size_t count) {
  const bool from_float = wide && is_narrow(dtype);
  const bool user = op.kind() == Op::Kind::user;
  if (!is_reducible(op, dtype) || (user && from_float)) {
    throw Error(ErrorCode::internal, fmt::format("no kernel for {} on {}{}; please report this as a bug in col",
                                                 op.name(), to_string(dtype), from_float ? " from float32" : ""));
  }
  if (first.data == nullptr) return;
  if (user) return fold_user(kernels, op, dtype, inputs, first, second, count);
  const bool copies = inputs.size() == 1 && (op.reduce_op() != ReduceOp::avg || ranks == 0);
  if (copies) return copy_to(kernels, inputs[0], first, second, count * size_of(dtype));
  fold_integer_average(kernels, dtype, inputs, ranks, first, second, count);
}

// Inlined into both: a fold of a few bytes takes no longer than to pass this many arguments on.
[[gnu::always_inline]] inline void fold_any(const KernelTable& kernels, const Op& op, DType dtype, bool wide,
                                            std::span<const std::byte* const> inputs, std::size_t ranks,
                                            const FoldTarget& first, const FoldTarget& second, std::size_t count) {
  assert(!inputs.empty());
  const bool divides = ranks != 0 && is_average(op);
  const FoldKernel kernel = one_pass(kernels, op, dtype, wide, inputs.size(), divides);
  const bool swapped = first.data == nullptr;
  const FoldTarget& one = swapped ? second : first;
  const FoldTarget& other = swapped ? first : second;
  if (kernel == nullptr) {
    fold_otherwise(kernels, op, dtype, wide, inputs, ranks, one, other, count);
  } else if (one.data != nullptr) {
    kernel({inputs.data(),
            inputs.size(),
            0,
            {one.data, one.stores},
            {other.data, other.stores},
            divides ? ranks : 0,
            count});
  }
}

}  // namespace

void fold(const Op& op, DType dtype, bool wide, std::span<const std::byte* const> inputs, std::size_t ranks,
          FoldTarget first, FoldTarget second, std::size_t count) {
  if (count != 0) fold_any(kernels(), op, dtype, wide, inputs, ranks, first, second, count);
}

FewFold few_fold(const Op& op, DType dtype, std::size_t inputs) {
  const bool divides = is_average(op);
  return {one_pass(kernels(), op, dtype, false, inputs, divides), divides ? inputs : 0};
}

void fold_with(const KernelTable& kernels, const Op& op, DType dtype, bool wide,
               std::span<const std::byte* const> inputs, std::size_t ranks, FoldTarget first, FoldTarget second,
               std::size_t count) {
  if (count != 0) fold_any(kernels, op, dtype, wide, inputs, ranks, first, second, count);
}

void copy(std::byte* to, const std::byte* from, std::size_t bytes, Stores stores) {
  if (bytes != 0) copy_to(kernels(), from, {to, stores}, {}, bytes);
}

}  // namespace col::core

#include "core/kernels/mixed.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include <fmt/format.h>

#include <col/error.hpp>

#include "core/kernels/element.hpp"
#include "core/kernels/instructions.hpp"
#include "core/kernels/kernel_table.hpp"
#include "core/kernels/operators.hpp"
#include "core/kernels/reduce.hpp"

namespace col::core {
namespace {

// Narrow floats that are scaled pass through this many floats on the stack: few enough for the first cache.
constexpr std::size_t kChunk = 1024;

[[noreturn]] void throw_unknown_dtype(DType dtype) {
  throw Error(ErrorCode::internal, fmt::format("dtype number {} does not exist; please report this as a bug in col",
                                               static_cast<int>(dtype)));
}

// Applies work(in, out, count), a loop over float32, to narrow floats; the result may be wide.
template <class Work>
void through_float(DType user, const std::byte* from, bool to_wide, std::byte* to, std::size_t count, Work work) {
  const NarrowKernels& kernels = narrow_kernels(user);
  const std::size_t size = size_of(user);
  std::array<std::byte, kChunk * sizeof(float)> chunk;
  for (std::size_t begin = 0; begin < count; begin += kChunk) {
    const std::size_t n = std::min(kChunk, count - begin);
    kernels.widen(from + begin * size, chunk.data(), n);
    if (to_wide) {
      work(chunk.data(), to + begin * sizeof(float), n);
    } else {
      work(chunk.data(), chunk.data(), n);
      kernels.narrow(chunk.data(), to + begin * size, n);
    }
  }
}

// `scale` modulo 2^64, without the undefined behaviour of casting a number that does not fit. Requires:
// is_whole(scale).
std::uint64_t wrap_to_integer(double scale) noexcept {
  const auto magnitude = static_cast<std::uint64_t>(std::fmod(std::fabs(scale), 0x1p64));
  return scale < 0 ? std::uint64_t{0} - magnitude : magnitude;
}

template <DType kDType>
void multiply_loop(double scale, const std::byte* in, std::byte* out, std::size_t count) {
  using Compute = typename Element<kDType>::Compute;
  Compute factor;
  if constexpr (is_integer<kDType>) {
    factor = static_cast<Compute>(wrap_to_integer(scale));
  } else {
    factor = static_cast<Compute>(scale);
  }
  // Arrays are the same or disjoint: no iteration depends on another.
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
  for (std::size_t i = 0; i < count; ++i) store<kDType>(out, i, Product::apply(load<kDType>(in, i), factor));
}

}  // namespace

void reduce_mixed(const Op& op, DType user, bool left_wide, const void* left, bool right_wide, const void* right,
                  bool result_wide, void* result, std::size_t count) {
  const bool any_wide = left_wide || right_wide || result_wide;
  if (!is_narrow(user) || !any_wide) return reduce(op, user, left, right, result, count);
  if (op.kind() == Op::Kind::user || !is_reducible(op, user)) {
    throw Error(ErrorCode::internal, fmt::format("{} on {} has no partial results in float32; please report this as a "
                                                 "bug in col",
                                                 op.name(), to_string(user)));
  }
  if (left_wide && right_wide && result_wide) return reduce(op, DType::float32, left, right, result, count);
  narrow_kernels(user).reduce(op.reduce_op(), {left_wide, right_wide, result_wide})(
      static_cast<const std::byte*>(left), static_cast<const std::byte*>(right), static_cast<std::byte*>(result),
      count);
}

void finish(const Op& op, std::size_t ranks, DType user, bool from_wide, const void* from, void* to,
            std::size_t count) {
  assert(ranks > 0);
  if (count == 0) return;
  if (op.kind() != Op::Kind::builtin || op.reduce_op() != ReduceOp::avg) {
    return convert(from_wide ? accumulation_type(user) : user, from, user, to, count);
  }
  const auto* in = static_cast<const std::byte*>(from);
  auto* out = static_cast<std::byte*>(to);
  const auto column = static_cast<std::size_t>(user);
  if (column >= kDTypeCount) throw_unknown_dtype(user);
  const KernelTable& table = kernels();
  if (const DivideKernel divide = table.divisions[column]) return divide(ranks, in, out, count);
  const auto& folds = from_wide && is_narrow(user) ? table.wide_folds : table.folds;
  const FoldKernel kernel = folds[static_cast<std::size_t>(ReduceOp::avg)][column];
  if (kernel == nullptr)
    throw Error(ErrorCode::internal,
                fmt::format("{} has no average; please report this as a bug in col", to_string(user)));
  kernel({&in, 1, 0, {out}, {}, ranks, count});
}

void premultiply_to(double scale, DType user, const void* in, bool to_wide, void* out, std::size_t count) {
  const auto* from = static_cast<const std::byte*>(in);
  auto* to = static_cast<std::byte*>(out);
  if (row_of(user).kind == ElementKind::complex)  // both parts
    return premultiply_to(scale, part_type(user), in, to_wide, out, 2 * count);
  const auto multiply = [&]<DType kDType>(std::integral_constant<DType, kDType>) {
    if (is_integer<kDType> && !is_whole(scale)) {
      throw Error(ErrorCode::internal,
                  fmt::format("premul_sum: {} is no whole number, which {} needs; please report this as a bug in col",
                              scale, to_string(kDType)));
    }
    if constexpr (is_narrow(kDType)) {
      through_float(kDType, from, to_wide, to, count, [=](const std::byte* x, std::byte* y, std::size_t n) {
        multiply_loop<DType::float32>(scale, x, y, n);
      });
    } else {
      multiply_loop<kDType>(scale, from, to, count);
    }
  };
  if (!dispatch(user, multiply)) throw_unknown_dtype(user);
}

void widen(DType user, const void* in, void* out, std::size_t count) {
  convert(user, in, accumulation_type(user), out, count);
}

}  // namespace col::core

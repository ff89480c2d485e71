#include "core/reduce.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include <col/error.hpp>

#include "core/element.hpp"
#include "core/half_kernels.hpp"
#include "core/mixed.hpp"
#include "core/operators.hpp"

namespace col::core {

namespace {

// ---- Loops ----------------------------------------------------------------------------------------------------------

using ReduceKernel = void (*)(const std::byte* left, const std::byte* right, std::byte* result, std::size_t count);

template <class Operator, DType kDType>
void reduce_loop(const std::byte* left, const std::byte* right, std::byte* result, std::size_t count) {
  // Arrays are the same or disjoint, so no iteration depends on another: the compiler may use vectors in every case,
  // where its own check at run time would take the scalar path for result == left, the most frequent call.
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
  for (std::size_t i = 0; i < count; ++i) {
    store<kDType>(result, i, Operator::apply(load<kDType>(left, i), load<kDType>(right, i)));
  }
}

using KernelRow = std::array<ReduceKernel, kDTypeCount>;

template <class Operator, bool kIntegersOnly = false>
constexpr KernelRow kernel_row() {
  KernelRow row{};
  [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    const auto fill = [&]<DType kDType>(std::integral_constant<DType, kDType>) {
      if constexpr (is_integer<kDType> || !(kIntegersOnly || is_half(kDType)))
        row[static_cast<std::size_t>(kDType)] = &reduce_loop<Operator, kDType>;
    };
    (fill(std::integral_constant<DType, static_cast<DType>(kIndex)>{}), ...);
  }
  (std::make_index_sequence<kDTypeCount>{});
  return row;
}

// By ReduceOp, then DType; null where the operator is not defined, and for 16-bit floats, which have their own table.
constexpr std::array<KernelRow, kReduceOpCount> kKernels = {
    kernel_row<Sum>(), kernel_row<Product>(),      kernel_row<Min>(),         kernel_row<Max>(),
    kernel_row<Sum>(), kernel_row<BitAnd, true>(), kernel_row<BitOr, true>(), kernel_row<BitXor, true>()};

ReduceKernel find_kernel(ReduceOp op, DType dtype) noexcept {
  const auto row = static_cast<std::size_t>(op);
  const auto column = static_cast<std::size_t>(dtype);
  if (row < kKernels.size() && is_half(dtype)) return half_kernels(dtype).reduce(op, {});
  return row < kKernels.size() && column < kDTypeCount ? kKernels[row][column] : nullptr;
}

}  // namespace

void reduce(const Op& op, DType dtype, const void* left, const void* right, void* result, std::size_t count) {
  if (count == 0) return;
  if (op.kind() == Op::Kind::user) {
    op.user_function()(left, right, result, count, dtype);
    return;
  }
  const ReduceKernel kernel = find_kernel(op.reduce_op(), dtype);
  if (kernel == nullptr) {
    throw Error(ErrorCode::internal,
                fmt::format("no kernel for {} on {}; please report this as a bug in col", op.name(), to_string(dtype)));
  }
  kernel(static_cast<const std::byte*>(left), static_cast<const std::byte*>(right), static_cast<std::byte*>(result),
         count);
}

bool is_reducible(const Op& op, DType dtype) noexcept {
  if (op.kind() == Op::Kind::user) return size_of(dtype) != 0;
  return find_kernel(op.reduce_op(), dtype) != nullptr;
}

DType accumulation_type(DType dtype) noexcept {
  return is_half(dtype) ? DType::float32 : dtype;
}

void convert(DType from, const void* in, DType to, void* out, std::size_t count) {
  if (count == 0) return;
  const auto* source = static_cast<const std::byte*>(in);
  auto* target = static_cast<std::byte*>(out);
  if (from == to) {
    if (in != out) std::memcpy(out, in, count * size_of(from));
  } else if (is_half(from) && to == DType::float32) {
    half_kernels(from).widen(source, target, count);
  } else if (from == DType::float32 && is_half(to)) {
    half_kernels(to).narrow(source, target, count);
  } else {
    throw Error(ErrorCode::internal, fmt::format("no conversion from {} to {}; please report this as a bug in col",
                                                 to_string(from), to_string(to)));
  }
}

bool is_whole(double scale) noexcept {
  return std::isfinite(scale) && std::trunc(scale) == scale;
}

void premultiply(double scale, DType dtype, void* inout, std::size_t count) {
  premultiply_to(scale, dtype, inout, false, inout, count);
}

void finish_average(std::size_t divisor, DType dtype, void* inout, std::size_t count) {
  finish(ReduceOp::avg, divisor, dtype, false, inout, inout, count);
}

}  // namespace col::core

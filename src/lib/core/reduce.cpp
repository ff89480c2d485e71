#include "core/reduce.hpp"

#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include <col/error.hpp>

#include "core/element.hpp"

namespace col::core {

namespace {

// ---- Operators on two elements --------------------------------------------------------------------------------------

struct Sum {
  template <class T>
  static T apply(T left, T right) noexcept {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<Wrapping<T>>(left) + static_cast<Wrapping<T>>(right));
    } else {
      return left + right;
    }
  }
};

struct Product {
  template <class T>
  static T apply(T left, T right) noexcept {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<Wrapping<T>>(left) * static_cast<Wrapping<T>>(right));
    } else {
      return left * right;
    }
  }
};

// x != x holds for NaN alone. A NaN on the right is taken because the comparison with it is false.
struct Min {
  template <class T>
  static T apply(T left, T right) noexcept {
    return ((left < right) | (left != left)) ? left : right;
  }
};

struct Max {
  template <class T>
  static T apply(T left, T right) noexcept {
    return ((left > right) | (left != left)) ? left : right;
  }
};

struct BitAnd {
  template <class T>
  static T apply(T left, T right) noexcept {
    return static_cast<T>(left & right);
  }
};

struct BitOr {
  template <class T>
  static T apply(T left, T right) noexcept {
    return static_cast<T>(left | right);
  }
};

struct BitXor {
  template <class T>
  static T apply(T left, T right) noexcept {
    return static_cast<T>(left ^ right);
  }
};

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

// Calls function(std::integral_constant<DType, d>) for the d that equals `dtype`; false outside the enumeration.
template <class Function>
bool dispatch(DType dtype, Function&& function) {
  return [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    return ((static_cast<std::size_t>(dtype) == kIndex &&
             (function(std::integral_constant<DType, static_cast<DType>(kIndex)>{}), true)) ||
            ...);
  }
  (std::make_index_sequence<kDTypeCount>{});
}

template <DType kDType>
constexpr bool is_integer = std::is_integral_v<typename Element<kDType>::Compute>;

using KernelRow = std::array<ReduceKernel, kDTypeCount>;

template <class Operator, bool kIntegersOnly = false>
constexpr KernelRow kernel_row() {
  KernelRow row{};
  [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    const auto fill = [&]<DType kDType>(std::integral_constant<DType, kDType>) {
      if constexpr (is_integer<kDType> || !kIntegersOnly)
        row[static_cast<std::size_t>(kDType)] = &reduce_loop<Operator, kDType>;
    };
    (fill(std::integral_constant<DType, static_cast<DType>(kIndex)>{}), ...);
  }
  (std::make_index_sequence<kDTypeCount>{});
  return row;
}

// By ReduceOp, then DType; null where the operator is not defined.
constexpr std::array<KernelRow, kReduceOpCount> kKernels = {
    kernel_row<Sum>(), kernel_row<Product>(),      kernel_row<Min>(),         kernel_row<Max>(),
    kernel_row<Sum>(), kernel_row<BitAnd, true>(), kernel_row<BitOr, true>(), kernel_row<BitXor, true>()};

ReduceKernel find_kernel(ReduceOp op, DType dtype) noexcept {
  const auto row = static_cast<std::size_t>(op);
  const auto column = static_cast<std::size_t>(dtype);
  return row < kKernels.size() && column < kDTypeCount ? kKernels[row][column] : nullptr;
}

[[noreturn]] void throw_unknown_dtype(DType dtype) {
  throw Error(ErrorCode::internal, fmt::format("dtype number {} does not exist; please report this as a bug in col",
                                               static_cast<int>(dtype)));
}

// `scale` modulo 2^64, without the undefined behaviour of casting a number that does not fit. Requires:
// is_whole(scale).
std::uint64_t wrap_to_integer(double scale) noexcept {
  const auto magnitude = static_cast<std::uint64_t>(std::fmod(std::fabs(scale), 0x1p64));
  return scale < 0 ? std::uint64_t{0} - magnitude : magnitude;
}

template <DType kDType>
void premultiply_loop(double scale, std::byte* inout, std::size_t count) {
  using Compute = typename Element<kDType>::Compute;
  Compute factor;
  if constexpr (is_integer<kDType>) {
    factor = static_cast<Compute>(wrap_to_integer(scale));
  } else {
    factor = static_cast<Compute>(scale);
  }
  for (std::size_t i = 0; i < count; ++i) store<kDType>(inout, i, Product::apply(load<kDType>(inout, i), factor));
}

template <DType kDType>
void divide_loop(std::size_t divisor, std::byte* inout, std::size_t count) {
  using Compute = typename Element<kDType>::Compute;
  if constexpr (!is_integer<kDType>) {
    const auto by = static_cast<Compute>(divisor);
    for (std::size_t i = 0; i < count; ++i) store<kDType>(inout, i, load<kDType>(inout, i) / by);
  } else {
    // In 64 bits, because the divisor need not fit the element: 200 ranks average int8.
    using Wide = std::conditional_t<std::is_signed_v<Compute>, std::int64_t, std::uint64_t>;
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<Wide>::max());
    const auto by = static_cast<Wide>(divisor < kMost ? divisor : kMost);
    for (std::size_t i = 0; i < count; ++i)
      store<kDType>(inout, i, static_cast<Compute>(static_cast<Wide>(load<kDType>(inout, i)) / by));
  }
}

template <DType kFrom, DType kTo>
void convert_loop(const std::byte* in, std::byte* out, std::size_t count) {
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
  for (std::size_t i = 0; i < count; ++i) store<kTo>(out, i, load<kFrom>(in, i));
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
  return dtype == DType::float16 || dtype == DType::bfloat16 ? DType::float32 : dtype;
}

void convert(DType from, const void* in, DType to, void* out, std::size_t count) {
  if (count == 0) return;
  const auto* source = static_cast<const std::byte*>(in);
  auto* target = static_cast<std::byte*>(out);
  if (from == to) {
    if (in != out) std::memcpy(out, in, count * size_of(from));
  } else if (from == DType::float16 && to == DType::float32) {
    convert_loop<DType::float16, DType::float32>(source, target, count);
  } else if (from == DType::bfloat16 && to == DType::float32) {
    convert_loop<DType::bfloat16, DType::float32>(source, target, count);
  } else if (from == DType::float32 && to == DType::float16) {
    convert_loop<DType::float32, DType::float16>(source, target, count);
  } else if (from == DType::float32 && to == DType::bfloat16) {
    convert_loop<DType::float32, DType::bfloat16>(source, target, count);
  } else {
    throw Error(ErrorCode::internal, fmt::format("no conversion from {} to {}; please report this as a bug in col",
                                                 to_string(from), to_string(to)));
  }
}

bool is_whole(double scale) noexcept {
  return std::isfinite(scale) && std::trunc(scale) == scale;
}

void premultiply(double scale, DType dtype, void* inout, std::size_t count) {
  const auto run = [&]<DType kDType>(std::integral_constant<DType, kDType>) {
    if (is_integer<kDType> && !is_whole(scale)) {
      throw Error(ErrorCode::internal,
                  fmt::format("premul_sum: {} is no whole number, which {} needs; please report this "
                              "as a bug in col",
                              scale, to_string(dtype)));
    }
    premultiply_loop<kDType>(scale, static_cast<std::byte*>(inout), count);
  };
  if (!dispatch(dtype, run)) throw_unknown_dtype(dtype);
}

void finish_average(std::size_t divisor, DType dtype, void* inout, std::size_t count) {
  assert(divisor > 0);
  const auto run = [&]<DType kDType>(std::integral_constant<DType, kDType>) {
    divide_loop<kDType>(divisor, static_cast<std::byte*>(inout), count);
  };
  if (!dispatch(dtype, run)) throw_unknown_dtype(dtype);
}

}  // namespace col::core

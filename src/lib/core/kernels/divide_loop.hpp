// The division that ends an average of integers. Included once by each source file of kernels/.
//
// No vector instruction divides integers, but the division of floats is exact here. The quotient of two integers is
// either a whole number, or it is further away from the next whole number than the rounding error of a float that holds
// both operands. So truncating the rounded quotient gives the integer quotient. Values that do not fit a double are
// divided one by one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <col/types.hpp>

#include "core/kernels/element.hpp"

namespace col::core {
namespace {  // NOLINT(google-build-namespaces)

template <class T>
using Dividend = std::conditional_t<
    sizeof(T) <= 2, float,
    std::conditional_t<sizeof(T) == 4, double, std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>>;

// `Isa` only separates the loops of one instruction set from those of another.
template <class Isa, DType kDType>
void divide_loop(std::size_t divisor, const std::byte* in, std::byte* out, std::size_t count) {
  using T = typename Element<kDType>::Compute;
  using D = Dividend<T>;
  D by;
  if constexpr (std::is_integral_v<D>) {
    // There are more ranks than the largest element: the quotient is zero either way.
    by = static_cast<D>(std::min<std::uint64_t>(divisor, std::numeric_limits<D>::max()));
  } else {
    by = static_cast<D>(divisor);
  }
  // Arrays are the same or disjoint: no iteration depends on another.
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
  for (std::size_t i = 0; i < count; ++i)
    core::store<kDType>(out, i, static_cast<T>(static_cast<D>(core::load<kDType>(in, i)) / by));
}

}  // namespace
}  // namespace col::core

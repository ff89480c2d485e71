// Vectors of the size that the instruction set has, and the operators on them. Included once by each source file of
// kernels/ (kernel_table.hpp says why everything is in an unnamed namespace).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "core/kernels/operators.hpp"

namespace col::core {
namespace {  // NOLINT(google-build-namespaces)

template <class T, std::size_t kBytes>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kBytes)));
};
template <class T, std::size_t kBytes>
using Vector = typename VectorOf<T, kBytes>::Type;

template <class T, std::size_t kBytes>
[[gnu::always_inline]] inline Vector<T, kBytes> load_vector(const std::byte* from) {
  Vector<T, kBytes> vector;
  std::memcpy(&vector, from, kBytes);
  return vector;
}

template <class To, class From>
[[gnu::always_inline]] inline To as(From from) {
  return __builtin_bit_cast(To, from);
}

template <class T, std::size_t kBytes>
[[gnu::always_inline]] inline Vector<T, kBytes> splat(T value) {
  return value - Vector<T, kBytes>{};
}

template <std::size_t kBytes>
using Words = Vector<std::uint32_t, kBytes>;
template <std::size_t kBytes>
using Floats = Vector<float, kBytes>;
// As many elements of 16 or 8 bits as there are floats in Floats<kBytes>.
template <std::size_t kBytes>
using Halves = Vector<std::uint16_t, kBytes / 2>;
template <std::size_t kBytes>
using Quarters = Vector<std::uint8_t, kBytes / 4>;

template <class T, std::size_t kBytes, class Half, std::size_t... kIndex>
[[gnu::always_inline]] inline Vector<T, kBytes> concatenate(Half low, Half high, std::index_sequence<kIndex...>) {
  return __builtin_shufflevector(low, high, kIndex...);
}
template <class T, std::size_t kBytes>
[[gnu::always_inline]] inline Vector<T, kBytes> concatenate(Vector<T, kBytes / 2> low, Vector<T, kBytes / 2> high) {
  return concatenate<T, kBytes>(low, high, std::make_index_sequence<kBytes / sizeof(T)>{});
}

// As Operator::apply() of operators.hpp, lane by lane.
template <class Operator, class T, std::size_t kBytes>
[[gnu::always_inline]] inline Vector<T, kBytes> combine(Vector<T, kBytes> left, Vector<T, kBytes> right) {
  using Result = Vector<T, kBytes>;
  if constexpr (std::is_integral_v<T>) {
    using Wrap = Vector<std::make_unsigned_t<T>, kBytes>;
    if constexpr (std::is_same_v<Operator, Sum>) return as<Result>(as<Wrap>(left) + as<Wrap>(right));
    if constexpr (std::is_same_v<Operator, Product>) return as<Result>(as<Wrap>(left) * as<Wrap>(right));
    if constexpr (std::is_same_v<Operator, Min>) return left < right ? left : right;
    if constexpr (std::is_same_v<Operator, Max>) return left > right ? left : right;
    if constexpr (std::is_same_v<Operator, BitAnd>) return left & right;
    if constexpr (std::is_same_v<Operator, BitOr>) return left | right;
    if constexpr (std::is_same_v<Operator, BitXor>) return left ^ right;
  } else {
    if constexpr (std::is_same_v<Operator, Sum>) return left + right;
    if constexpr (std::is_same_v<Operator, Product>) return left * right;
    if constexpr (std::is_same_v<Operator, Min>) {
      using Bits = Vector<BitsOf<T>, kBytes>;
      const Result least = left < right ? left : right;
      const Result least_of_the_other_order = right < left ? right : left;
      return as<Result>(as<Bits>(least) | as<Bits>(least_of_the_other_order));
    }
    if constexpr (std::is_same_v<Operator, Max>) return -combine<Min, T, kBytes>(-left, -right);
  }
}

// The same for narrow floats. If both are NaNs, the processor takes that of the left operand, and the sign is all that
// a NaN of float8_e4m3fn has. A compiler may swap the operands of + and *, in the one loop and not in the other, and
// where a loop begins depends on the address of the result: ranks that compute the same would get different bits.
// (Wider floats are safe: their right operand is in memory, which only one side of the instruction takes.)
template <class Isa, class Operator, std::size_t kBytes>
[[gnu::always_inline]] inline Floats<kBytes> combine_in_order(Floats<kBytes> left, Floats<kBytes> right) {
  if constexpr (std::is_same_v<Operator, Sum>) return Isa::template sum<kBytes>(left, right);
  if constexpr (std::is_same_v<Operator, Product>) return Isa::template product<kBytes>(left, right);
  return combine<Operator, float, kBytes>(left, right);
}

}  // namespace
}  // namespace col::core

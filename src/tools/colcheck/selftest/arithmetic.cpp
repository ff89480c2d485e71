#include "colcheck/selftest/arithmetic.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "colcheck/engine/element.hpp"
#include "colcheck/engine/fold.hpp"
#include "colcheck/engine/primitive.hpp"

namespace col::colcheck {
namespace {

template <class T>
T load(const void* data, std::size_t index) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(data) + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void store(Bytes& data, std::size_t index, T value) {
  std::memcpy(data.data() + index * sizeof(T), &value, sizeof(T));
}

// The lesser or the greater: a NaN before any number, and -0 less than +0.
template <class T>
T extreme(bool greatest, T left, T right) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(left)) return left;
    if (std::isnan(right)) return right;
    if (left == right) return std::signbit(left) != greatest ? left : right;
  }
  return (right < left) != greatest ? right : left;
}

// The same with a comparison in which a NaN is neither less nor greater, and the first value stays.
template <class T>
T extreme_without_nan(bool greatest, T left, T right) {
  return greatest ? std::max(left, right) : std::min(left, right);
}

template <class T>
T extreme_of_signed(bool greatest, T left, T right) {
  using Signed = std::make_signed_t<T>;
  return static_cast<T>(extreme(greatest, static_cast<Signed>(left), static_cast<Signed>(right)));
}

template <class T>
T saturated_sum(T left, T right) {
  T sum;
  if (!__builtin_add_overflow(left, right, &sum)) return sum;
  return right < T{} ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
}

template <class T>
T without_denormals(T value) {
  if constexpr (std::is_same_v<T, float16>) {
    return (value.bits & 0x7c00) == 0 ? T::from_bits(value.bits & 0x8000) : value;
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    return (value.bits & 0x7f80) == 0 ? T::from_bits(value.bits & 0x8000) : value;
  } else if constexpr (std::is_same_v<T, float8_e4m3fn>) {
    return (value.bits & 0x78) == 0 ? T::from_bits(value.bits & 0x80) : value;
  } else if constexpr (std::is_same_v<T, float8_e5m2>) {
    return (value.bits & 0x7c) == 0 ? T::from_bits(value.bits & 0x80) : value;
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(T{}, value) : value;
  } else {
    return value;
  }
}

}  // namespace

DType Arithmetic::working_type() const {
  return is_narrow(dtype_) && op_.kind() != Op::Kind::user ? DType::float32 : dtype_;
}

Bytes Arithmetic::contribution(ConstTensorView in) const {
  Bytes bytes(in.count * size_of(working_type()));
  if (op_.kind() == Op::Kind::user) {
    if (!bytes.empty()) std::memcpy(bytes.data(), in.data, bytes.size());
    return bytes;
  }
  with_element(dtype_, [&](auto element) {
    using T = decltype(element);
    for (std::size_t i = 0; i < in.count; ++i) store(bytes, i, scaled(static_cast<Partial<T>>(load<T>(in.data, i))));
  });
  return bytes;
}

void Arithmetic::combine(Bytes& left, const Bytes& right, std::size_t count) const {
  if (count == 0) return;
  if (op_.kind() == Op::Kind::user) {
    const std::byte *first = left.data(), *second = right.data();
    if (has(Bug::operands_swapped)) std::swap(first, second);
    return op_.user_function()(first, second, left.data(), count, dtype_);
  }
  with_element(dtype_, [&](auto element) {
    using T = Partial<decltype(element)>;
    for (std::size_t i = 0; i < count; ++i)
      store(left, i, rounded(combined(load<T>(left.data(), i), load<T>(right.data(), i))));
  });
}

Bytes Arithmetic::result(const Bytes& folded) const {
  if (op_.kind() == Op::Kind::user) return folded;
  return with_element(dtype_, [&](auto element) {
    using T = decltype(element);
    const std::size_t count = folded.size() / sizeof(Partial<T>);
    Bytes bytes(count * sizeof(T));
    for (std::size_t i = 0; i < count; ++i) {
      const auto value = static_cast<T>(averaged(load<Partial<T>>(folded.data(), i)));
      store(bytes, i, has(Bug::denormals_flushed) ? without_denormals(value) : value);
    }
    return bytes;
  });
}

template <class T>
T Arithmetic::scaled(T value) const {
  if (op_.kind() != Op::Kind::premul_sum) return value;
  if constexpr (std::is_integral_v<T>) {
    const auto magnitude = static_cast<std::uint64_t>(std::fmod(std::fabs(op_.scale()), 0x1p64));
    const std::uint64_t scale = op_.scale() < 0 ? 0 - magnitude : magnitude;
    return static_cast<T>(static_cast<std::uint64_t>(value) * scale);
  } else {
    return value * static_cast<typename RealOf<T>::Type>(op_.scale());
  }
}

template <class T>
T Arithmetic::combined(T left, T right) const {
  const ReduceOp op = op_.reduce_op();
  if constexpr (std::is_same_v<T, bool>) {
    if (op == ReduceOp::bxor) return left != right;
    return op == ReduceOp::band || op == ReduceOp::min ? left && right : left || right;
  } else if constexpr (is_complex_v<T>) {
    return op == ReduceOp::product ? product_of(left, right) : left + right;
  } else {
    return combined_real(op, left, right);
  }
}

template <class T>
T Arithmetic::combined_real(ReduceOp op, T left, T right) const {
  if (op == ReduceOp::min || op == ReduceOp::max) {
    const bool greatest = op == ReduceOp::max;
    if (has(Bug::lost_nan)) return extreme_without_nan(greatest, left, right);
    if constexpr (std::is_unsigned_v<T>) {
      if (has(Bug::signed_compare)) return extreme_of_signed(greatest, left, right);
    }
    return extreme(greatest, left, right);
  }
  if constexpr (std::is_integral_v<T>) {
    const auto x = static_cast<std::uint64_t>(left), y = static_cast<std::uint64_t>(right);
    if (op == ReduceOp::band) return static_cast<T>(x & y);
    if (op == ReduceOp::bor) return static_cast<T>(x | y);
    if (op == ReduceOp::bxor) return static_cast<T>(x ^ y);
    if (op == ReduceOp::product) return static_cast<T>(x * y);
  } else if (op == ReduceOp::product) {
    return left * right;
  }
  return summed(left, right);
}

template <class T>
T Arithmetic::summed(T left, T right) const {
  if constexpr (std::is_integral_v<T>) {
    if (has(Bug::saturates)) return saturated_sum(left, right);
    return static_cast<T>(static_cast<std::uint64_t>(left) + static_cast<std::uint64_t>(right));
  } else {
    if (has(Bug::sums_in_float32)) return static_cast<T>(static_cast<float>(left) + static_cast<float>(right));
    return left + right;
  }
}

template <class T>
T Arithmetic::averaged(T total) const {
  if (op_.kind() != Op::Kind::builtin || op_.reduce_op() != ReduceOp::avg) return total;
  if constexpr (std::is_integral_v<T>) {
    using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    const auto sum = static_cast<Wide>(total), ranks = static_cast<Wide>(ranks_);
    const bool lowers = has(Bug::avg_floor) && sum < 0 && sum % ranks != 0;
    return static_cast<T>(sum / ranks - (lowers ? 1 : 0));
  } else {
    return total / static_cast<typename RealOf<T>::Type>(ranks_);
  }
}

template <class T>
T Arithmetic::rounded(T partial) const {
  if constexpr (std::is_same_v<T, float>) {
    if (has(Bug::rounds_every_hop)) {
      return with_element(dtype_, [partial](auto element) {
        if constexpr (is_narrow_v<decltype(element)>) return static_cast<float>(decltype(element)(partial));
        return partial;
      });
    }
  }
  return partial;
}

}  // namespace col::colcheck

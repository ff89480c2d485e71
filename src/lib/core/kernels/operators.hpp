// The built-in operators on two elements, in the type they are computed in.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/kernels/element.hpp"

namespace col::core {

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

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

// `least` and `greatest` match the processors' instructions: they return the right operand if the two do not compare,
// as for two zeros, or for a NaN and a number. They are taken in both orders, and the two results are combined bit by
// bit. So -0 wins against +0 in either order, and a NaN wins because its exponent is all ones. So no result depends on
// the order in which an algorithm combines the ranks, except for the payload of a NaN.
struct Min {
  template <class T>
  static T apply(T left, T right) noexcept {
    if constexpr (std::is_integral_v<T>) {
      return left < right ? left : right;
    } else {
      return std::bit_cast<T>(std::bit_cast<BitsOf<T>>(left < right ? left : right) |
                              std::bit_cast<BitsOf<T>>(right < left ? right : left));
    }
  }
};

struct Max {
  template <class T>
  static T apply(T left, T right) noexcept {
    if constexpr (std::is_integral_v<T>) {
      return left > right ? left : right;
    } else {
      return -Min::apply(-left, -right);
    }
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

}  // namespace col::core

// The built-in operators on two elements, in the type they are computed in.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/element.hpp"

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

// `least` and `greatest` are what processors have an instruction for: the right one of two that do not compare, be they
// zeros or a NaN and a number. Taken both ways around and put together bit by bit, -0 wins against +0, whichever comes
// first, and so does a NaN, because the exponent of all ones does. So no result depends on the order in which an
// algorithm combines the ranks, but for the payload of a NaN.
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

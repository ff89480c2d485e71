// The built-in operators on two elements, in the type they are computed in.
#pragma once

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

}  // namespace col::core

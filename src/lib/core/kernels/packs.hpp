// A pack is what a fold loads, keeps in registers and stores as one unit: a vector of elements, or, for narrow floats,
// the two vectors of float32 that they become. Included once by each source file of kernels/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <col/types.hpp>

#include "core/kernels/element.hpp"
#include "core/kernels/kernel_table.hpp"
#include "core/kernels/narrow_lanes.hpp"
#include "core/kernels/vectors.hpp"

namespace col::core {
namespace {  // NOLINT(google-build-namespaces)

// Elements that are computed in the form that they have in memory.
template <DType kDType, std::size_t kBytes>
struct PlainPack {
  using T = typename Element<kDType>::Compute;
  using Stored = Vector<T, kBytes>;
  static constexpr std::size_t kCount = kBytes / sizeof(T);
  static constexpr std::size_t kInputBytes = kBytes;
  static constexpr std::size_t kRegisters = 1;
  static constexpr DType kInput = kDType;
  static constexpr DType kOutput = kDType;

  Stored values;

  [[gnu::always_inline]] static inline PlainPack load(const std::byte* from) { return {load_vector<T, kBytes>(from)}; }
  template <class Operator>
  [[gnu::always_inline]] inline void add(const std::byte* from) {
    values = combine<Operator, T, kBytes>(values, load_vector<T, kBytes>(from));
  }
  [[gnu::always_inline]] inline void divide(T by) { values = values / by; }
  [[gnu::always_inline]] inline Stored result() const { return values; }
};

// 16-bit floats in two vectors: one holds the elements of even index, the other those of odd index. Shifts and masks
// separate and join them; they are cheaper than any instruction that moves elements to other lanes.
template <class Isa, DType kDType, std::size_t kBytes>
struct EvenOddPack {
  using Stored = Words<kBytes>;
  using Lanes = NarrowLanes<kDType, kBytes>;
  static constexpr std::size_t kCount = kBytes / 2;
  static constexpr std::size_t kInputBytes = kBytes;
  static constexpr std::size_t kRegisters = 2;
  static constexpr DType kInput = kDType;
  static constexpr DType kOutput = kDType;

  Floats<kBytes> even, odd;

  [[gnu::always_inline]] static inline EvenOddPack load(const std::byte* from) {
    const Stored words = load_vector<std::uint32_t, kBytes>(from);
    if constexpr (kDType == DType::bfloat16) {
      // A signalling NaN needs no care here: the sum and the product make it quiet, and so does the rounding.
      return {as<Floats<kBytes>>(words << 16), as<Floats<kBytes>>(words & 0xffff'0000U)};
    } else {
      return {Lanes::widen(words & 0xffffU), Lanes::widen(words >> 16)};
    }
  }
  template <class Operator>
  [[gnu::always_inline]] inline void add(const std::byte* from) {
    const EvenOddPack other = load(from);
    even = combine_in_order<Isa, Operator, kBytes>(even, other.even);
    odd = combine_in_order<Isa, Operator, kBytes>(odd, other.odd);
  }
  [[gnu::always_inline]] inline void divide(float by) {
    even = even / by;
    odd = odd / by;
  }
  [[gnu::always_inline]] inline Stored result() const {
    if constexpr (kDType == DType::bfloat16) {
      return (Lanes::narrow_upper(even) >> 16) | (Lanes::narrow_upper(odd) & 0xffff'0000U);
    } else {
      return Lanes::narrow(even) | (Lanes::narrow(odd) << 16);
    }
  }
};

// 16-bit floats from inputs of kFrom. The two vectors hold the lower and the upper half of the elements.
template <class Isa, DType kFrom, DType kDType, std::size_t kBytes>
struct LowHighPack {
  using Stored = Vector<std::uint16_t, kBytes>;
  static constexpr std::size_t kCount = kBytes / 2;
  static constexpr std::size_t kInputBytes = kCount * sizeof(typename Element<kFrom>::Storage);
  static constexpr std::size_t kRegisters = 2;
  static constexpr DType kInput = kFrom;
  static constexpr DType kOutput = kDType;

  Floats<kBytes> low, high;

  [[gnu::always_inline]] static inline LowHighPack load(const std::byte* from) {
    return {load_floats<Isa, kFrom, kBytes>(from), load_floats<Isa, kFrom, kBytes>(from + kInputBytes / 2)};
  }
  template <class Operator>
  [[gnu::always_inline]] inline void add(const std::byte* from) {
    const LowHighPack other = load(from);
    low = combine_in_order<Isa, Operator, kBytes>(low, other.low);
    high = combine_in_order<Isa, Operator, kBytes>(high, other.high);
  }
  [[gnu::always_inline]] inline void divide(float by) {
    low = low / by;
    high = high / by;
  }
  [[gnu::always_inline]] inline Stored result() const {
    return concatenate<std::uint16_t, kBytes>(narrow_floats<Isa, kDType, kBytes>(low),
                                              narrow_floats<Isa, kDType, kBytes>(high));
  }
};

// 8-bit floats from inputs of kFrom, in four vectors. They hold a quarter of the elements each; or, where only shifts
// and masks separate and join them, vector k holds every fourth element from the k-th on.
template <class Isa, DType kFrom, DType kDType, std::size_t kBytes>
class QuarterPack {
 public:
  static constexpr bool kInOrder = kFrom != kDType || Isa::kConvertsFloat16;
  using Stored = std::conditional_t<kInOrder, Vector<std::uint8_t, kBytes>, Words<kBytes>>;
  static constexpr std::size_t kCount = kBytes;
  static constexpr std::size_t kInputBytes = kCount * sizeof(typename Element<kFrom>::Storage);
  static constexpr std::size_t kRegisters = 4;
  static constexpr DType kInput = kFrom;
  static constexpr DType kOutput = kDType;

  [[gnu::always_inline]] static inline QuarterPack load(const std::byte* from) {
    if constexpr (kInOrder) {
      constexpr std::size_t kStep = kInputBytes / 4;
      return {load_floats<Isa, kFrom, kBytes>(from), load_floats<Isa, kFrom, kBytes>(from + kStep),
              load_floats<Isa, kFrom, kBytes>(from + 2 * kStep), load_floats<Isa, kFrom, kBytes>(from + 3 * kStep)};
    } else {
      const auto words = load_vector<std::uint32_t, kBytes>(from);
      return {Lanes::widen(words & 0xffU), Lanes::widen((words >> 8) & 0xffU), Lanes::widen((words >> 16) & 0xffU),
              Lanes::widen(words >> 24)};
    }
  }
  template <class Operator>
  [[gnu::always_inline]] inline void add(const std::byte* from) {
    const QuarterPack other = load(from);
    a = combine_in_order<Isa, Operator, kBytes>(a, other.a);
    b = combine_in_order<Isa, Operator, kBytes>(b, other.b);
    c = combine_in_order<Isa, Operator, kBytes>(c, other.c);
    d = combine_in_order<Isa, Operator, kBytes>(d, other.d);
  }
  [[gnu::always_inline]] inline void divide(float by) {
    a = a / by;
    b = b / by;
    c = c / by;
    d = d / by;
  }
  // Not inlined: it is long, and would be in each of the places that store a result.
  [[gnu::noinline]] Stored result() const {
    if constexpr (kInOrder) {
      return concatenate<std::uint8_t, kBytes>(concatenate<std::uint8_t, kBytes / 2>(narrow(a), narrow(b)),
                                               concatenate<std::uint8_t, kBytes / 2>(narrow(c), narrow(d)));
    } else {
      return Lanes::narrow(a) | (Lanes::narrow(b) << 8) | (Lanes::narrow(c) << 16) | (Lanes::narrow(d) << 24);
    }
  }

  Floats<kBytes> a, b, c, d;

 private:
  using Lanes = NarrowLanes<kDType, kBytes>;
  [[gnu::always_inline]] static inline Quarters<kBytes> narrow(Floats<kBytes> value) {
    return narrow_floats<Isa, kDType, kBytes>(value);
  }
};

// The pack for inputs of kFrom and results of kDType.
template <class Isa, DType kFrom, DType kDType, std::size_t kBytes>
using PackFor = std::conditional_t<
    !is_narrow(kDType), PlainPack<kDType, kBytes>,
    std::conditional_t<row_of(kDType).size == 1, QuarterPack<Isa, kFrom, kDType, kBytes>,
                       std::conditional_t<kFrom == kDType && (kDType == DType::bfloat16 || !Isa::kConvertsFloat16),
                                          EvenOddPack<Isa, kDType, kBytes>, LowHighPack<Isa, kFrom, kDType, kBytes>>>>;

}  // namespace
}  // namespace col::core

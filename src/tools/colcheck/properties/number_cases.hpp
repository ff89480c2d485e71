// Cases for properties about numbers: reductions in every form, with types and operators in turn.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "colcheck/engine/draw.hpp"
#include "colcheck/engine/element.hpp"
#include "colcheck/engine/reduction.hpp"

namespace col::colcheck {

inline constexpr DType kFloats[] = {DType::float32, DType::bfloat16,      DType::float64,
                                    DType::float16, DType::float8_e4m3fn, DType::float8_e5m2};
inline constexpr DType kNarrow[] = {DType::float16, DType::bfloat16, DType::float8_e4m3fn, DType::float8_e5m2};
inline constexpr DType kIntegers[] = {DType::int32, DType::uint8,  DType::int64,
                                      DType::int8,  DType::uint64, DType::uint32};
// The operators that may round, and the same with min and max.
inline constexpr Operator kScaling[] = {Operator::sum, Operator::product, Operator::avg, Operator::premul_sum};
inline constexpr Operator kOrdering[] = {Operator::sum, Operator::product, Operator::avg,
                                         Operator::min, Operator::max,     Operator::premul_sum};
inline constexpr std::uint64_t kUsual[] = {0};

struct NumberCases {
  std::span<const DType> dtypes;
  std::span<const Operator> operators;
  std::span<const std::uint64_t> variants = kUsual;
  int quick_rows = 3;         // for every form, each with another number of ranks if there are enough
  int full_rows = 12;         // for every backend
  std::size_t shortest = 16;  // of a vector or block; fewer numbers show little
  std::size_t longest = {};   // in a quick run; 0: no limit
  // Whether the property uses the form. Empty: all reductions.
  std::function<bool(const Form& form)> takes = {};
  // Whether the form can be used for that case. Empty: always.
  std::function<bool(const Form& form, const Case& c)> allows = {};
  // The last word on a case. Empty: none.
  std::function<void(Case& c)> adapt = {};
};

// Appends the cases. A backend's own algorithm comes with each of the types and variants, and with each allowed
// operator for each kind of type (signed, unsigned, narrow float, other float), whatever the number of rows. The others
// come with pairs of type and operator in a random order, all equally often. Deterministic.
void add_number_cases(Draw& draw, const NumberCases& wanted);

// Whether the algorithm must use segments that are much shorter than usual.
bool has_short_segments(const Case& c);

// The call of a case, with `scale` of each rank for premul_sum.
Reduction reduction_of(const Case& c, double (*scale)(int rank));
// Whether Case::count is the size of a block, of which a rank gives one to each rank.
bool takes_blocks(Primitive primitive);
// Elements of every rank's input to a reduction.
std::size_t input_count(const Case& c);

// Calls body(T{}) for the C++ type of a DType of integers, or of floating-point numbers. Throws std::invalid_argument
// for other types, which only a hand-written token has.
template <bool kIntegers, class Body>
Finding with_numbers(DType dtype, Body body) {
  return with_element(dtype, [&](auto element) -> Finding {
    using T = decltype(element);
    constexpr bool kIsFloat = is_narrow_v<T> || std::is_floating_point_v<T>;
    if constexpr (kIntegers ? std::is_integral_v<T> && !std::is_same_v<T, bool> : kIsFloat)
      return body(element);
    else
      throw std::invalid_argument(fmt::format("the property is about {}, and {} is of another kind",
                                              kIntegers ? "integers" : "floats", to_string(dtype)));
  });
}

// A rank's factor: fractions that no narrow float can hold; whole numbers, large and small.
double broken_scale(int rank);
double whole_scale(int rank);

}  // namespace col::colcheck

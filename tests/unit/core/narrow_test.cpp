// The floats of 8 and 16 bits against references that know only the definitions of the formats.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <col/types.hpp>

#include "core/kernels/fold.hpp"
#include "core/kernels/instructions.hpp"
#include "core/kernels/reduce.hpp"
#include "helpers.hpp"
#include "support/catch.hpp"

namespace {

struct Format {
  int fraction_bits;
  int bias;
  int exponent_mask;
  bool has_infinity = true;  // else the largest exponent has numbers, and one NaN

  std::uint32_t sign() const { return static_cast<std::uint32_t>(exponent_mask + 1) << fraction_bits; }
  // The first pattern that is no finite number.
  std::uint32_t end() const {
    const std::uint32_t infinity = static_cast<std::uint32_t>(exponent_mask) << fraction_bits;
    return has_infinity ? infinity : sign() - 1;
  }
  std::uint32_t quiet() const { return has_infinity ? end() | 1U << (fraction_bits - 1) : end(); }
};

template <class T>
struct FormatOf;
template <>
struct FormatOf<col::float16> : Format {
  FormatOf() : Format{10, 15, 0x1f} {}
};
template <>
struct FormatOf<col::bfloat16> : Format {
  FormatOf() : Format{7, 127, 0xff} {}
};
template <>
struct FormatOf<col::float8_e4m3fn> : Format {
  FormatOf() : Format{3, 7, 0xf, false} {}
};
template <>
struct FormatOf<col::float8_e5m2> : Format {
  FormatOf() : Format{2, 15, 0x1f} {}
};

double reference_widen(Format format, std::uint32_t bits) {
  const std::uint32_t magnitude = bits & (format.sign() - 1);
  const int exponent = static_cast<int>(magnitude >> format.fraction_bits);
  const int fraction = static_cast<int>(magnitude) & ((1 << format.fraction_bits) - 1);
  const double sign = (bits & format.sign()) != 0 ? -1.0 : 1.0;
  if (magnitude >= format.end())
    return magnitude == format.end() && format.has_infinity ? sign * std::numeric_limits<double>::infinity()
                                                            : std::numeric_limits<double>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - format.bias - format.fraction_bits);
  return sign * std::ldexp(fraction + (1 << format.fraction_bits), exponent - format.bias - format.fraction_bits);
}

// Nearest multiple of the unit in the last place, in exact double arithmetic. Requires: not NaN.
std::uint32_t reference_narrow(Format format, double value) {
  const std::uint32_t sign = std::signbit(value) ? format.sign() : 0;
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  if (std::isinf(magnitude)) return sign | format.end();
  const int exponent = std::max(std::ilogb(magnitude), 1 - format.bias);
  const double units = magnitude / std::ldexp(1.0, exponent - format.fraction_bits);
  auto whole = static_cast<std::uint32_t>(units);
  const double rest = units - whole;
  if (rest > 0.5 || (rest == 0.5 && whole % 2 == 1)) ++whole;
  // A carry out of the fraction counts the exponent up by itself.
  const std::uint32_t bits = (static_cast<std::uint32_t>(exponent - 1 + format.bias) << format.fraction_bits) + whole;
  return sign | std::min(bits, format.end());
}

template <class T>
T of(std::uint32_t pattern) {
  return T::from_bits(static_cast<decltype(T::bits)>(pattern));
}

}  // namespace

TEMPLATE_TEST_CASE("narrow floats: every pattern survives a round trip through float", "[dtype]", col::float16,
                   col::bfloat16, col::float8_e4m3fn, col::float8_e5m2) {
  using T = TestType;
  const FormatOf<T> format;
  std::size_t wrong = 0, nans = 0;
  for (std::uint32_t bits = 0; bits < 2 * format.sign(); ++bits) {
    const auto widened = static_cast<float>(of<T>(bits));
    const double expected = reference_widen(format, bits);
    const T back(widened);
    if (std::isnan(expected)) {
      ++nans;
      const std::uint32_t quiet = bits | format.quiet();
      wrong += !(std::isnan(widened) && std::signbit(widened) == ((bits & format.sign()) != 0) && back.bits == quiet);
    } else {
      wrong += !(widened == expected && std::signbit(widened) == std::signbit(expected) && back.bits == bits);
    }
  }
  CHECK(wrong == 0);
  CHECK(nans == (format.has_infinity ? 2 * ((std::size_t{1} << format.fraction_bits) - 1) : 2));
}

// The float halfway between every two neighbours, and the floats beside it. Beyond the last number there is another
// tie, where the next one would be.
TEMPLATE_TEST_CASE("narrow floats: every tie goes to even", "[dtype]", col::float16, col::bfloat16, col::float8_e4m3fn,
                   col::float8_e5m2) {
  using T = TestType;
  const FormatOf<T> format;
  std::size_t wrong = 0;
  for (std::uint32_t pattern = 0; pattern < format.end(); ++pattern) {
    const double low = reference_widen(format, pattern);
    const double high = pattern + 1 == format.end() ? 2 * low - reference_widen(format, pattern - 1)
                                                    : reference_widen(format, pattern + 1);
    const auto tie = static_cast<float>((low + high) / 2);
    REQUIRE(static_cast<double>(tie) == (low + high) / 2);
    for (const float value :
         {tie, std::nextafter(tie, 0.0f), std::nextafter(tie, std::numeric_limits<float>::infinity()), -tie})
      wrong += T(value).bits != reference_narrow(format, value);
    const std::uint32_t even = pattern % 2 == 0 ? pattern : pattern + 1;
    wrong += T(tie).bits != even;
  }
  CHECK(wrong == 0);
}

TEMPLATE_TEST_CASE("narrow floats: random floats round as the definition says", "[dtype]", col::float16, col::bfloat16,
                   col::float8_e4m3fn, col::float8_e5m2) {
  using T = TestType;
  const FormatOf<T> format;
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  std::size_t wrong = 0;
  for (int i = 0; i < 300'000; ++i) {
    std::uint32_t bits = random();
    // Half of them in the range of float16, which random bits seldom hit.
    if (i % 2 == 0) bits = (bits & 0x807fffffu) | ((100 + random() % 45) << 23);
    const auto value = std::bit_cast<float>(bits);
    const T narrowed(value);
    if (std::isnan(value)) {
      wrong +=
          !(std::isnan(static_cast<float>(narrowed)) && std::signbit(value) == ((narrowed.bits & format.sign()) != 0));
    } else {
      wrong += narrowed.bits != reference_narrow(format, value);
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("16-bit floats: values at the edges", "[dtype]") {
  CHECK(col::float16(65504.0f).bits == 0x7bff);
  CHECK(col::float16(65519.996f).bits == 0x7bff);
  CHECK(col::float16(65520.0f).bits == 0x7c00);
  CHECK(col::float16(-1e30f).bits == 0xfc00);
  CHECK(col::float16(0x1p-24f).bits == 0x0001);
  CHECK(col::float16(0x1p-25f).bits == 0x0000);
  CHECK(col::float16(0x1.000002p-25f).bits == 0x0001);
  CHECK(col::float16(-0.0f).bits == 0x8000);
  CHECK(col::float16(std::numeric_limits<float>::denorm_min()).bits == 0x0000);
  CHECK(col::bfloat16(std::numeric_limits<float>::max()).bits == 0x7f80);
  CHECK(col::bfloat16(std::numeric_limits<float>::denorm_min()).bits == 0x0000);
  CHECK(col::bfloat16(1.0f).bits == 0x3f80);
}

TEST_CASE("8-bit floats: values at the edges", "[dtype]") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  CHECK(static_cast<float>(col::float8_e4m3fn::from_bits(0x7e)) == 448);
  CHECK(col::float8_e4m3fn(1.0f).bits == 0x38);
  CHECK(col::float8_e4m3fn(464.0f).bits == 0x7e);      // half way to the 480 that a NaN has the place of, and odd
  CHECK(col::float8_e4m3fn(464.00003f).bits == 0x7f);  // nothing saturates
  CHECK(col::float8_e4m3fn(-1e30f).bits == 0xff);
  CHECK(col::float8_e4m3fn(kInfinity).bits == 0x7f);
  CHECK(col::float8_e4m3fn(-kInfinity).bits == 0xff);
  CHECK(col::float8_e4m3fn(0x1p-9f).bits == 0x01);
  CHECK(col::float8_e4m3fn(0x1p-10f).bits == 0x00);
  CHECK(col::float8_e4m3fn(-0x1.000002p-10f).bits == 0x81);
  CHECK(col::float8_e4m3fn(std::numeric_limits<float>::denorm_min()).bits == 0x00);
  CHECK(static_cast<float>(col::float8_e5m2::from_bits(0x7b)) == 57344);
  CHECK(col::float8_e5m2(1.0f).bits == 0x3c);
  CHECK(col::float8_e5m2(61439.996f).bits == 0x7b);
  CHECK(col::float8_e5m2(61440.0f).bits == 0x7c);
  CHECK(col::float8_e5m2(-kInfinity).bits == 0xfc);
  CHECK(col::float8_e5m2(0x1p-16f).bits == 0x01);
  CHECK(col::float8_e5m2(0x1p-17f).bits == 0x00);
  CHECK(col::float8_e5m2(-0.0f).bits == 0x80);
  CHECK(col::float8_e5m2(std::numeric_limits<float>::quiet_NaN()).bits == 0x7e);
}

TEST_CASE("16-bit floats: a NaN whose payload lies in the lost bits stays a NaN", "[dtype]") {
  const auto low_payload = std::bit_cast<float>(0x7f800001u);
  CHECK(col::float16(low_payload).bits == 0x7e00);
  CHECK(col::bfloat16(low_payload).bits == 0x7fc0);
  const auto all_ones = std::bit_cast<float>(0xffffffffu);
  CHECK(col::float16(all_ones).bits == 0xffff);
  CHECK(col::bfloat16(all_ones).bits == 0xffff);
  // As much of the payload as fits.
  CHECK(col::float16(std::bit_cast<float>(0x7fc06000u)).bits == 0x7e03);
  CHECK(col::float8_e5m2(low_payload).bits == 0x7e);
  CHECK(col::float8_e5m2(all_ones).bits == 0xff);
  CHECK(col::float8_e4m3fn(low_payload).bits == 0x7f);
}

namespace {

// Of two numbers as doubles, which hold every sum and product of two 8-bit floats.
double reference_of(col::ReduceOp op, double left, double right) {
  switch (op) {
    case col::ReduceOp::product:
      return left * right;
    case col::ReduceOp::min:
    case col::ReduceOp::max: {
      if (std::isnan(left) || std::isnan(right)) return std::numeric_limits<double>::quiet_NaN();
      const bool least = op == col::ReduceOp::min;
      if (left == right) return std::signbit(left) == least ? left : right;  // -0 is less than +0
      return (left < right) == least ? left : right;
    }
    default:
      return left + right;
  }
}

}  // namespace

TEMPLATE_TEST_CASE("8-bit floats: every pair, by every operator and instruction set", "[dtype]", col::float8_e4m3fn,
                   col::float8_e5m2) {
  using T = TestType;
  const FormatOf<T> format;
  constexpr std::size_t kPairs = 65536;
  std::vector<std::uint8_t> left(kPairs), right(kPairs), result(kPairs);
  for (std::size_t i = 0; i < kPairs; ++i) {
    left[i] = static_cast<std::uint8_t>(i / 256);
    right[i] = static_cast<std::uint8_t>(i);
  }
  const std::array inputs = {reinterpret_cast<const std::byte*>(left.data()),
                             reinterpret_cast<const std::byte*>(right.data())};
  for (const col::ReduceOp op :
       {col::ReduceOp::sum, col::ReduceOp::product, col::ReduceOp::min, col::ReduceOp::max, col::ReduceOp::avg}) {
    for (const col::core::Instructions instructions : core_test::available_instructions()) {
      INFO(to_string(op) << " by " << to_string(instructions));
      const bool averages = op == col::ReduceOp::avg;
      col::core::fold_with(kernel_table(instructions), op, col::dtype_of<T>(), false, inputs, averages ? 2 : 0,
                           {reinterpret_cast<std::byte*>(result.data())}, {}, kPairs);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < kPairs; ++i) {
        const double exact =
            reference_of(op, reference_widen(format, left[i]), reference_widen(format, right[i])) / (averages ? 2 : 1);
        const bool right_one = std::isnan(exact) ? std::isnan(reference_widen(format, result[i]))
                                                 : result[i] == reference_narrow(format, exact);
        if (!right_one && wrong++ == 0)
          UNSCOPED_INFO(int{left[i]} << " and " << int{right[i]} << " gave " << int{result[i]});
      }
      CHECK(wrong == 0);
    }
  }
}

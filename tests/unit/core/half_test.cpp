// float16 and bfloat16 against references that know only the definitions of the formats.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>

#include <col/types.hpp>

#include "support/catch.hpp"

namespace {

struct Format {
  int fraction_bits;
  int bias;
  int exponent_mask;
};
constexpr Format kHalf{10, 15, 0x1f};
constexpr Format kBrain{7, 127, 0xff};

double reference_widen(Format format, std::uint16_t bits) {
  const int exponent = (bits >> format.fraction_bits) & format.exponent_mask;
  const int fraction = bits & ((1 << format.fraction_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == format.exponent_mask)
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - format.bias - format.fraction_bits);
  return sign * std::ldexp(fraction + (1 << format.fraction_bits), exponent - format.bias - format.fraction_bits);
}

// Nearest multiple of the unit in the last place, in exact double arithmetic. Requires: not NaN.
std::uint16_t reference_narrow(Format format, float value) {
  const std::uint32_t sign = std::signbit(value) ? 0x8000 : 0;
  const std::uint32_t infinity = static_cast<std::uint32_t>(format.exponent_mask) << format.fraction_bits;
  const double magnitude = std::fabs(static_cast<double>(value));
  if (magnitude == 0) return static_cast<std::uint16_t>(sign);
  if (std::isinf(magnitude)) return static_cast<std::uint16_t>(sign | infinity);
  const int exponent = std::max(std::ilogb(magnitude), 1 - format.bias);
  const double units = magnitude / std::ldexp(1.0, exponent - format.fraction_bits);
  auto whole = static_cast<std::uint32_t>(units);
  const double rest = units - whole;
  if (rest > 0.5 || (rest == 0.5 && whole % 2 == 1)) ++whole;
  // A carry out of the fraction counts the exponent up by itself.
  const std::uint32_t bits = (static_cast<std::uint32_t>(exponent - 1 + format.bias) << format.fraction_bits) + whole;
  return static_cast<std::uint16_t>(sign | std::min(bits, infinity));
}

template <class T>
void check_every_pattern(Format format) {
  std::size_t wrong = 0;
  for (std::uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    const auto widened = static_cast<float>(T::from_bits(bits));
    const double expected = reference_widen(format, bits);
    const T back(widened);
    if (std::isnan(expected)) {
      const auto quiet = static_cast<std::uint16_t>(bits | (1 << (format.fraction_bits - 1)));
      wrong += !(std::isnan(widened) && std::signbit(widened) == ((bits & 0x8000) != 0) && back.bits == quiet);
    } else {
      wrong += !(widened == expected && std::signbit(widened) == std::signbit(expected) && back.bits == bits);
    }
  }
  CHECK(wrong == 0);
}

// The float halfway between every two neighbours, and the floats beside it.
template <class T>
void check_every_tie(Format format) {
  const auto infinity = static_cast<std::uint32_t>(format.exponent_mask) << format.fraction_bits;
  std::size_t wrong = 0;
  for (std::uint32_t pattern = 0; pattern < infinity; ++pattern) {
    const double low = reference_widen(format, static_cast<std::uint16_t>(pattern));
    const double high = pattern + 1 == infinity
                            ? 2 * low - reference_widen(format, static_cast<std::uint16_t>(pattern - 1))
                            : reference_widen(format, static_cast<std::uint16_t>(pattern + 1));
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

template <class T>
void check_random_floats(Format format) {
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
      wrong += !(std::isnan(static_cast<float>(narrowed)) && std::signbit(value) == ((narrowed.bits & 0x8000) != 0));
    } else {
      wrong += narrowed.bits != reference_narrow(format, value);
    }
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("float16: every pattern survives a round trip through float", "[dtype]") {
  check_every_pattern<col::float16>(kHalf);
}
TEST_CASE("bfloat16: every pattern survives a round trip through float", "[dtype]") {
  check_every_pattern<col::bfloat16>(kBrain);
}
TEST_CASE("float16: every tie goes to even", "[dtype]") {
  check_every_tie<col::float16>(kHalf);
}
TEST_CASE("bfloat16: every tie goes to even", "[dtype]") {
  check_every_tie<col::bfloat16>(kBrain);
}
TEST_CASE("float16: random floats round as the definition says", "[dtype]") {
  check_random_floats<col::float16>(kHalf);
}
TEST_CASE("bfloat16: random floats round as the definition says", "[dtype]") {
  check_random_floats<col::bfloat16>(kBrain);
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

TEST_CASE("16-bit floats: a NaN whose payload lies in the lost bits stays a NaN", "[dtype]") {
  const auto low_payload = std::bit_cast<float>(0x7f800001u);
  CHECK(col::float16(low_payload).bits == 0x7e00);
  CHECK(col::bfloat16(low_payload).bits == 0x7fc0);
  const auto all_ones = std::bit_cast<float>(0xffffffffu);
  CHECK(col::float16(all_ones).bits == 0xffff);
  CHECK(col::bfloat16(all_ones).bits == 0xffff);
  // As much of the payload as fits.
  CHECK(col::float16(std::bit_cast<float>(0x7fc06000u)).bits == 0x7e03);
}

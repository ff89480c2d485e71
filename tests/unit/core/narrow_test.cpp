// The floats of 8 and 16 bits against references that know only the definitions of the formats.
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <col/types.hpp>

#include "colcheck/selftest/definition.hpp"
#include "core/kernels/fold.hpp"
#include "core/kernels/instructions.hpp"
#include "core/kernels/reduce.hpp"
#include "helpers.hpp"
#include "support/catch.hpp"

namespace {

using col::colcheck::definition::Layout;
using col::colcheck::definition::layout_of;

bool has_infinity(const Layout& layout) {
  return layout.infinity % (1 << layout.fraction) == 0;
}
// The least bits that make a NaN of infinity, or of what is one.
int quiet(const Layout& layout) {
  return layout.infinity | (1 << (layout.fraction - 1));
}

double reference_widen(const Layout& layout, std::uint32_t pattern) {
  const int bits = static_cast<int>(pattern) & (layout.sign() - 1);
  const double sign = (static_cast<int>(pattern) & layout.sign()) != 0 ? -1.0 : 1.0;
  if (bits < layout.infinity) return sign * layout.number(bits);
  return bits == layout.infinity && has_infinity(layout) ? sign * std::numeric_limits<double>::infinity()
                                                         : std::numeric_limits<double>::quiet_NaN();
}

// Requires: not NaN.
std::uint32_t reference_narrow(const Layout& layout, double value) {
  return static_cast<std::uint32_t>(layout.nearest(std::fabs(value)) + (std::signbit(value) ? layout.sign() : 0));
}

template <class T>
T of(std::uint32_t pattern) {
  return T::from_bits(static_cast<decltype(T::bits)>(pattern));
}

}  // namespace

TEMPLATE_TEST_CASE("narrow floats: every pattern survives a round trip through float", "[dtype]", col::float16,
                   col::bfloat16, col::float8_e4m3fn, col::float8_e5m2) {
  using T = TestType;
  const Layout format = layout_of(T{});
  std::size_t wrong = 0, nans = 0;
  for (std::uint32_t bits = 0; bits < static_cast<std::uint32_t>(2 * format.sign()); ++bits) {
    const auto widened = static_cast<float>(of<T>(bits));
    const double expected = reference_widen(format, bits);
    const T back(widened);
    if (std::isnan(expected)) {
      ++nans;
      const std::uint32_t quieted = bits | static_cast<std::uint32_t>(quiet(format));
      wrong += !(std::isnan(widened) && std::signbit(widened) == (static_cast<int>(bits) >= format.sign()) &&
                 back.bits == quieted);
    } else {
      wrong += !(widened == expected && std::signbit(widened) == std::signbit(expected) && back.bits == bits);
    }
  }
  CHECK(wrong == 0);
  CHECK(nans == (has_infinity(format) ? 2 * ((std::size_t{1} << format.fraction) - 1) : 2));
}

// The float halfway between every two neighbours, and the floats beside it. Beyond the last number there is another
// tie, where the next one would be.
TEMPLATE_TEST_CASE("narrow floats: every tie goes to even", "[dtype]", col::float16, col::bfloat16, col::float8_e4m3fn,
                   col::float8_e5m2) {
  using T = TestType;
  const Layout format = layout_of(T{});
  std::size_t wrong = 0;
  for (std::uint32_t pattern = 0; pattern < static_cast<std::uint32_t>(format.infinity); ++pattern) {
    const double low = reference_widen(format, pattern);
    const double high = format.number(static_cast<int>(pattern) + 1);
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
  const Layout format = layout_of(T{});
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

TEMPLATE_TEST_CASE("8-bit floats: every pair, by every operator and instruction set", "[dtype]", col::float8_e4m3fn,
                   col::float8_e5m2) {
  using T = TestType;
  const Layout format = layout_of(T{});
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
        // Doubles hold every sum and product of two.
        const double exact = col::colcheck::definition::folded(
            op, std::vector<double>{reference_widen(format, left[i]), reference_widen(format, right[i])}, 2);
        const bool right_one = std::isnan(exact) ? std::isnan(reference_widen(format, result[i]))
                                                 : result[i] == reference_narrow(format, exact);
        if (!right_one && wrong++ == 0)
          UNSCOPED_INFO(int{left[i]} << " and " << int{right[i]} << " gave " << int{result[i]});
      }
      CHECK(wrong == 0);
    }
  }
}

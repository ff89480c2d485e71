// The kernels for partial results against the obvious reference, and the two forms of the narrow loops against each
// other.
#include "core/kernels/mixed.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "common/arithmetic.hpp"
#include "core/kernels/instructions.hpp"
#include "core/kernels/reduce.hpp"
#include "helpers.hpp"
#include "support/catch.hpp"

using col::DType;
using col::Op;
using col::ReduceOp;
using col::core::Instructions;
using col::core::NarrowKernels;
using col::core::Widths;
using col::tools::is_alike;
using col::tools::Steps;
using core_test::error_of;
using core_test::rounded;

namespace {

constexpr std::array<std::size_t, 6> kCounts = {0, 1, 7, 64, 1000, 1001};
constexpr std::array kNarrow = {DType::float16, DType::bfloat16, DType::float8_e4m3fn, DType::float8_e5m2};
constexpr std::array kNumericOps = {ReduceOp::sum, ReduceOp::product, ReduceOp::min, ReduceOp::max, ReduceOp::avg};

std::vector<DType> other_types() {
  std::vector<DType> types;
  for (int i = 0; i < col::kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (!col::core::is_narrow(dtype) && dtype != DType::boolean) types.push_back(dtype);  // that has no average
  }
  return types;
}

float widened(DType dtype, std::uint16_t bits) {
  switch (dtype) {
    case DType::float16:
      return static_cast<float>(col::float16::from_bits(bits));
    case DType::bfloat16:
      return static_cast<float>(col::bfloat16::from_bits(bits));
    case DType::float8_e4m3fn:
      return static_cast<float>(col::float8_e4m3fn::from_bits(static_cast<std::uint8_t>(bits)));
    default:
      return static_cast<float>(col::float8_e5m2::from_bits(static_cast<std::uint8_t>(bits)));
  }
}

// Every number of the type, one after the other, as bytes.
std::vector<std::byte> every_number(DType dtype) {
  const std::size_t size = size_of(dtype), numbers = std::size_t{1} << (8 * size);
  std::vector<std::byte> bytes(numbers * size);
  for (std::size_t i = 0; i < numbers; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);  // its first byte is the low one
    std::memcpy(bytes.data() + i * size, &bits, size);
  }
  return bytes;
}

// An array at an odd address with a guard behind it. Copies are compared whole, guard included.
class GuardedArray {
 public:
  GuardedArray(DType dtype, bool wide, std::size_t count)
      : dtype_(wide ? col::core::accumulation_type(dtype) : dtype),
        count_(count),
        bytes_(1 + count * size_of(dtype_) + 16, std::byte{0xcd}) {}

  std::byte* data() { return bytes_.data() + 1; }
  const std::byte* data() const { return bytes_.data() + 1; }
  DType dtype() const { return dtype_; }
  std::size_t bytes() const { return count_ * size_of(dtype_); }
  bool guard_is_whole() const {
    for (std::size_t i = 1 + bytes(); i < bytes_.size(); ++i) {
      if (bytes_[i] != std::byte{0xcd}) return false;
    }
    return bytes_[0] == std::byte{0xcd};
  }
  bool operator==(const GuardedArray& other) const { return dtype_ == other.dtype_ && bytes_ == other.bytes_; }

  // A narrow float, or the float32 of its partial results.
  float number(std::size_t i) const {
    if (dtype_ == DType::float32) return get<float>(i);
    return widened(dtype_, size_of(dtype_) == 1 ? get<std::uint8_t>(i) : get<std::uint16_t>(i));
  }

  void randomize(std::mt19937& random) { core_test::randomize({data(), bytes()}, dtype_, random); }

 private:
  template <class T>
  T get(std::size_t i) const {
    T value;
    std::memcpy(&value, data() + i * sizeof(T), sizeof(T));
    return value;
  }

  DType dtype_;
  std::size_t count_;
  std::vector<std::byte> bytes_;
};

std::string first_difference(ReduceOp op, const GuardedArray& left, const GuardedArray& right,
                             const GuardedArray& result, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const float expected = rounded(result.dtype(), Steps().combined<float>(op, left.number(i), right.number(i)));
    if (is_alike(result.number(i), expected)) continue;
    return "element " + std::to_string(i) + ": " + std::to_string(left.number(i)) + " and " +
           std::to_string(right.number(i)) + " gave " + std::to_string(result.number(i));
  }
  return result.guard_is_whole() ? "" : "wrote beyond the end";
}

// The ways in which result, left and right may be the same array.
enum class Overlap { none, left, right, both };

}  // namespace

TEST_CASE("reduce_mixed: narrow floats and float32 in every combination, one rounding", "[mixed]") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (const DType dtype : kNarrow) {
    for (const ReduceOp op : kNumericOps) {
      for (int widths = 0; widths < 8; ++widths) {
        const bool left_wide = (widths & 4) != 0, right_wide = (widths & 2) != 0, result_wide = (widths & 1) != 0;
        for (const Overlap overlap : {Overlap::none, Overlap::left, Overlap::right, Overlap::both}) {
          if ((overlap == Overlap::left || overlap == Overlap::both) && left_wide != result_wide) continue;
          if ((overlap == Overlap::right || overlap == Overlap::both) && right_wide != result_wide) continue;
          for (const std::size_t count : kCounts) {
            GuardedArray left(dtype, left_wide, count), right(dtype, right_wide, count),
                result(dtype, result_wide, count);
            left.randomize(random);
            right.randomize(random);
            if (overlap == Overlap::both) right = left;
            if (overlap == Overlap::left || overlap == Overlap::both) result = left;
            if (overlap == Overlap::right) result = right;
            const GuardedArray left_before = left, right_before = right;
            const void* a = overlap == Overlap::left || overlap == Overlap::both ? result.data() : left.data();
            const void* b = overlap == Overlap::right || overlap == Overlap::both ? result.data() : right.data();
            col::core::reduce_mixed(op, dtype, left_wide, a, right_wide, b, result_wide, result.data(), count);
            INFO(to_string(op) << " on " << to_string(dtype) << ", widths " << widths << ", overlap "
                               << static_cast<int>(overlap) << ", count " << count);
            REQUIRE(first_difference(op, left_before, right_before, result, count) == "");
            REQUIRE((left == left_before && right == right_before));
          }
        }
      }
    }
  }
}

TEST_CASE("reduce_mixed: types that are their own partial results are reduced as always", "[mixed]") {
  std::mt19937 random(1);
  for (const DType dtype : other_types()) {
    for (int i = 0; i < col::kReduceOpCount; ++i) {
      const auto op = static_cast<ReduceOp>(i);
      if (!col::core::is_reducible(op, dtype)) continue;
      for (const bool wide : {false, true}) {
        GuardedArray left(dtype, wide, 1001), right(dtype, wide, 1001), result(dtype, wide, 1001), expected = result;
        left.randomize(random);
        right.randomize(random);
        col::core::reduce(op, dtype, left.data(), right.data(), expected.data(), 1001);
        col::core::reduce_mixed(op, dtype, wide, left.data(), !wide, right.data(), wide, result.data(), 1001);
        INFO(to_string(op) << " on " << to_string(dtype));
        REQUIRE(result == expected);
      }
    }
  }
}

TEST_CASE("reduce_mixed: premul_sum adds, a user's function works on the user's type only", "[mixed]") {
  const std::vector<col::bfloat16> left = {col::bfloat16(1.0F)};
  const std::vector<float> right = {0x1p-20F};
  float result = 0;
  col::core::reduce_mixed(Op::premul_sum(3), DType::bfloat16, false, left.data(), true, right.data(), true, &result, 1);
  CHECK(result == 1.0F + 0x1p-20F);

  int calls = 0;
  const Op user = Op::user([&](const void*, const void*, void*, std::size_t, DType) { ++calls; }, true);
  std::vector<col::bfloat16> narrow = left;
  col::core::reduce_mixed(user, DType::bfloat16, false, left.data(), false, left.data(), false, narrow.data(), 1);
  CHECK(calls == 1);
  CHECK(error_of([&] {
          col::core::reduce_mixed(user, DType::bfloat16, false, left.data(), false, left.data(), true, &result, 1);
        }).code() == col::ErrorCode::internal);
  CHECK(error_of([&] {
          col::core::reduce_mixed(ReduceOp::bxor, DType::float16, true, &result, true, &result, true, &result, 1);
        }).code() == col::ErrorCode::internal);
  CHECK(calls == 1);
}

TEST_CASE("finish: narrow floats are divided in float32 and rounded once", "[mixed]") {
  std::mt19937 random(2);
  for (const DType dtype : kNarrow) {
    for (const bool from_wide : {false, true}) {
      for (const bool in_place : {false, true}) {
        if (in_place && from_wide) continue;
        for (const ReduceOp op : kNumericOps) {
          for (const std::size_t ranks : {1U, 2U, 3U, 7U, 300U}) {
            for (const std::size_t count : kCounts) {
              GuardedArray from(dtype, from_wide, count), to(dtype, false, count);
              from.randomize(random);
              const GuardedArray before = from;
              GuardedArray& result = in_place ? from : to;
              col::core::finish(op, ranks, dtype, from_wide, from.data(), result.data(), count);
              for (std::size_t i = 0; i < count; ++i) {
                const float partial = before.number(i);
                const float exact = op == ReduceOp::avg ? partial / static_cast<float>(ranks) : partial;
                INFO(to_string(op) << " of " << partial << " over " << ranks << " in " << to_string(dtype));
                if (!is_alike(result.number(i), rounded(dtype, exact))) FAIL(result.number(i) << " came");
              }
              REQUIRE(result.guard_is_whole());
            }
          }
        }
      }
    }
  }
}

TEST_CASE("finish: other types divide in their own arithmetic, and all operators but avg copy", "[mixed]") {
  std::mt19937 random(3);
  for (const DType dtype : other_types()) {
    for (const std::size_t count : kCounts) {
      for (const std::size_t ranks : {1U, 3U, 300U}) {
        GuardedArray from(dtype, false, count), to(dtype, false, count);
        from.randomize(random);
        GuardedArray expected = from;
        col::core::finish(ReduceOp::max, ranks, dtype, true, from.data(), to.data(), count);
        REQUIRE(to == expected);
        col::core::finish(ReduceOp::product, ranks, dtype, false, to.data(), to.data(), count);
        REQUIRE(to == expected);
        col::core::finish(ReduceOp::avg, ranks, dtype, true, from.data(), to.data(), count);
        col::core::finish(ReduceOp::avg, ranks, dtype, false, from.data(), from.data(), count);
        REQUIRE(to == from);
      }
    }
  }
  const std::vector<std::int8_t> whole = {-128, -7, 7, 127};
  std::vector<std::int8_t> third(4);
  col::core::finish(ReduceOp::avg, 3, DType::int8, true, whole.data(), third.data(), 4);
  CHECK(third == std::vector<std::int8_t>{-42, -2, 2, 42});
  const std::vector<double> real = {1, -1, 1e300};
  std::vector<double> real_third(3);
  col::core::finish(ReduceOp::avg, 3, DType::float64, false, real.data(), real_third.data(), 3);
  CHECK(real_third == std::vector<double>{1.0 / 3, -1.0 / 3, 1e300 / 3});
}

TEST_CASE("premultiply_to: a scaled copy, for narrow floats in float32 when it may", "[mixed]") {
  std::mt19937 random(4);
  for (const DType dtype : kNarrow) {
    for (const bool to_wide : {false, true}) {
      for (const double scale : {0.5, -3.0, 1.0 / 3, 1e-8, 1e30, 0.0}) {
        for (const std::size_t count : kCounts) {
          GuardedArray in(dtype, false, count), out(dtype, to_wide, count);
          in.randomize(random);
          const GuardedArray before = in;
          col::core::premultiply_to(scale, dtype, in.data(), to_wide, out.data(), count);
          for (std::size_t i = 0; i < count; ++i) {
            const float product = before.number(i) * static_cast<float>(scale);
            INFO(before.number(i) << " times " << scale << " in " << to_string(dtype));
            if (!is_alike(out.number(i), rounded(out.dtype(), product))) FAIL(out.number(i) << " came");
          }
          REQUIRE(in == before);
          REQUIRE(out.guard_is_whole());
          if (to_wide) continue;
          col::core::premultiply_to(scale, dtype, in.data(), false, in.data(), count);
          REQUIRE(in == out);
        }
      }
    }
  }
  const std::vector<std::int8_t> bytes = {-128, -1, 2, 100};
  std::vector<std::int8_t> scaled(4);
  col::core::premultiply_to(-3, DType::int8, bytes.data(), true, scaled.data(), 4);
  CHECK(scaled == std::vector<std::int8_t>{-128, 3, -6, -44});
  CHECK(error_of([&] { col::core::premultiply_to(0.5, DType::int8, bytes.data(), false, scaled.data(), 4); }).code() ==
        col::ErrorCode::internal);
}

TEST_CASE("widen: every narrow float, and a copy of everything else", "[mixed]") {
  for (const DType dtype : kNarrow) {
    const std::vector<std::byte> narrow = every_number(dtype);
    std::vector<float> wide(narrow.size() / size_of(dtype));
    col::core::widen(dtype, narrow.data(), wide.data(), wide.size());
    for (std::size_t i = 0; i < wide.size(); ++i) {
      const float expected = widened(dtype, static_cast<std::uint16_t>(i));
      if (std::bit_cast<std::uint32_t>(wide[i]) != std::bit_cast<std::uint32_t>(expected)) FAIL(wide[i] << " came");
    }
  }
  const std::vector<std::int64_t> whole = {-1, 0, 1};
  std::vector<std::int64_t> copy(3);
  col::core::widen(DType::int64, whole.data(), copy.data(), 3);
  CHECK(copy == whole);
}

TEST_CASE("mixed kernels: a count of zero touches nothing", "[mixed]") {
  for (int i = 0; i < col::kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (dtype == DType::boolean) continue;  // it has neither sum nor average
    col::core::reduce_mixed(ReduceOp::sum, dtype, true, nullptr, false, nullptr, true, nullptr, 0);
    col::core::finish(ReduceOp::avg, 2, dtype, true, nullptr, nullptr, 0);
    col::core::premultiply_to(2, dtype, nullptr, true, nullptr, 0);
    col::core::widen(dtype, nullptr, nullptr, 0);
  }
}

// ---- The two forms of the narrow loops ------------------------------------------------------------------------------

namespace {

// Every float that lies on, next to, or half way between two neighbouring narrow floats, and all NaN patterns with one
// bit of payload.
std::vector<float> floats_around(DType dtype) {
  std::vector<float> values;
  const auto add_near = [&](std::uint32_t bits) {
    for (const std::uint32_t near : {bits - 1, bits, bits + 1}) values.push_back(std::bit_cast<float>(near));
  };
  const std::uint32_t half_way = dtype == DType::float16         ? 0x1000U
                                 : dtype == DType::bfloat16      ? 0x8000U
                                 : dtype == DType::float8_e4m3fn ? 0x8'0000U
                                                                 : 0x10'0000U;
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(widened(dtype, static_cast<std::uint16_t>(i)));
    add_near(bits);
    add_near(bits + half_way);
    add_near(i << 16);
    add_near((i << 16) | 0x1000U);
  }
  for (std::uint32_t bit = 0; bit < 23; ++bit) {
    values.push_back(std::bit_cast<float>(0x7f800000U | (1U << bit)));
    values.push_back(std::bit_cast<float>(0xff800000U | (1U << bit)));
  }
  return values;
}

}  // namespace

TEST_CASE("narrow kernels: conversions give the same bits with and without special instructions", "[mixed]") {
  if (col::core::best_instructions() == Instructions::baseline) {
    WARN("not compared: this processor has no AVX2 and F16C");
    return;
  }
  for (const DType dtype : kNarrow) {
    const NarrowKernels& plain = narrow_kernels(dtype, Instructions::baseline);
    const NarrowKernels& fast = narrow_kernels(dtype, Instructions::avx2_f16c);
    const std::vector<std::byte> every = every_number(dtype);
    std::vector<std::uint32_t> wide(every.size() / size_of(dtype)), wide_fast(wide.size());
    const std::byte* in = every.data();
    plain.widen(in, reinterpret_cast<std::byte*>(wide.data()), wide.size());
    fast.widen(in, reinterpret_cast<std::byte*>(wide_fast.data()), wide.size());
    REQUIRE((wide == wide_fast));

    const std::vector<float> floats = floats_around(dtype);
    REQUIRE(floats.size() > 700'000);
    const std::size_t size = size_of(dtype);
    std::vector<std::byte> narrow(floats.size() * size), narrow_fast(floats.size() * size);
    in = reinterpret_cast<const std::byte*>(floats.data());
    plain.narrow(in, narrow.data(), floats.size());
    fast.narrow(in, narrow_fast.data(), floats.size());
    for (std::size_t i = 0; i < floats.size(); ++i) {
      if (std::memcmp(&narrow[i * size], &narrow_fast[i * size], size) == 0) continue;
      INFO(to_string(dtype) << " of bits " << std::bit_cast<std::uint32_t>(floats[i]));
      FAIL(static_cast<int>(narrow_fast[i * size]) << " came");
    }
  }
}

TEST_CASE("narrow kernels: reductions give the same with and without special instructions", "[mixed]") {
  if (col::core::best_instructions() == Instructions::baseline) {
    WARN("not compared: this processor has no AVX2 and F16C");
    return;
  }
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (const DType dtype : kNarrow) {
    for (const ReduceOp op : kNumericOps) {
      for (int widths = 0; widths < 7; ++widths) {
        const Widths wide{(widths & 4) != 0, (widths & 2) != 0, (widths & 1) != 0};
        for (const std::size_t count : kCounts) {
          GuardedArray left(dtype, wide.left, count), right(dtype, wide.right, count);
          left.randomize(random);
          right.randomize(random);
          GuardedArray plain(dtype, wide.result, count), fast(dtype, wide.result, count);
          narrow_kernels(dtype, Instructions::baseline)
              .reduce(op, wide)(left.data(), right.data(), plain.data(), count);
          narrow_kernels(dtype, Instructions::avx2_f16c)
              .reduce(op, wide)(left.data(), right.data(), fast.data(), count);
          INFO(to_string(op) << " on " << to_string(dtype) << ", widths " << widths << ", count " << count);
          REQUIRE(first_difference(op, left, right, plain, count) == "");
          for (std::size_t i = 0; i < count; ++i) {
            if (!is_alike(fast.number(i), plain.number(i))) FAIL(fast.number(i) << " came");
          }
          REQUIRE(fast.guard_is_whole());
        }
      }
    }
  }
}

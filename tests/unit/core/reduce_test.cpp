// The reduction kernels against the obvious scalar reference: every op on every dtype, in every way the arrays may lie.
#include "core/kernels/reduce.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

#include "core/kernels/element.hpp"
#include "helpers.hpp"
#include "support/catch.hpp"

using col::DType;
using col::Op;
using col::ReduceOp;
using core_test::error_of;

namespace {

// Wide enough for every product; not in ISO C++, which __extension__ admits.
__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;

using Bytes = std::vector<unsigned char>;

bool is_float(DType dtype) {
  return row_of(dtype).kind == col::ElementKind::floating;
}

// An element as a number that holds every value of every integer type, or of every float type.
struct Number {
  Int128 integer = 0;
  double real = 0;
};

Number element(DType dtype, const unsigned char* data, std::size_t index) {
  Number number;
  col::core::dispatch(dtype, [&]<DType kDType>(std::integral_constant<DType, kDType>) {
    const auto value = col::core::load<kDType>(reinterpret_cast<const std::byte*>(data), index);
    if constexpr (std::is_floating_point_v<decltype(value)>)
      number.real = value;
    else
      number.integer = static_cast<Int128>(value);
  });
  return number;
}

// What an integer of that type holds after wrapping.
Int128 wrapped(DType dtype, UInt128 value) {
  const int bits = static_cast<int>(size_of(dtype)) * 8;
  const UInt128 kept = value & ((static_cast<UInt128>(1) << bits) - 1);
  const bool is_signed = row_of(dtype).kind == col::ElementKind::signed_integer;
  const bool negative = is_signed && (kept >> (bits - 1)) != 0;
  return static_cast<Int128>(kept) - (negative ? static_cast<Int128>(1) << bits : 0);
}

Int128 integer_result(ReduceOp op, DType dtype, Int128 left, Int128 right) {
  const auto a = static_cast<UInt128>(left);
  const auto b = static_cast<UInt128>(right);
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
      return wrapped(dtype, a + b);
    case ReduceOp::product:
      return wrapped(dtype, a * b);
    case ReduceOp::min:
      return std::min(left, right);
    case ReduceOp::max:
      return std::max(left, right);
    case ReduceOp::band:
      return wrapped(dtype, a & b);
    case ReduceOp::bor:
      return wrapped(dtype, a | b);
    case ReduceOp::bxor:
      return wrapped(dtype, a ^ b);
  }
  return 0;
}

// In the precision of the type: float for the narrow ones, which then round once.
double float_result(ReduceOp op, DType dtype, double left, double right) {
  if (dtype == DType::float64) return core_test::combined(op, left, right);
  return core_test::rounded(dtype, core_test::combined(op, static_cast<float>(left), static_cast<float>(right)));
}

bool agrees(ReduceOp op, DType dtype, const unsigned char* result, std::size_t i, Number left, Number right) {
  const Number actual = element(dtype, result, i);
  if (!is_float(dtype)) return actual.integer == integer_result(op, dtype, left.integer, right.integer);
  return core_test::same(actual.real, float_result(op, dtype, left.real, right.real));
}

Bytes random_elements(DType dtype, std::size_t count, std::mt19937& random) {
  Bytes bytes(count * size_of(dtype));
  core_test::randomize(std::as_writable_bytes(std::span(bytes)), dtype, random);
  return bytes;
}

enum class Alias { none, left, right, both };

struct Case {
  ReduceOp op;
  DType dtype;
  std::size_t count;
  std::size_t offset;  // bytes before the first element, in every array
  Alias alias;
};

constexpr std::size_t kGuard = 64;
constexpr unsigned char kGuardByte = 0xa5;

Bytes padded(const Bytes& content, std::size_t offset) {
  Bytes padded(offset + content.size() + kGuard, kGuardByte);
  std::copy(content.begin(), content.end(), padded.begin() + static_cast<std::ptrdiff_t>(offset));
  return padded;
}

// How many elements are wrong, or bytes beside the result or of an input changed.
std::size_t errors_of(const Case& c, std::mt19937& random) {
  const Bytes left_content = random_elements(c.dtype, c.count, random);
  const Bytes right_content = c.alias == Alias::both ? left_content : random_elements(c.dtype, c.count, random);
  Bytes left = padded(left_content, c.offset);
  Bytes right = padded(right_content, c.offset);
  Bytes separate(c.offset + left_content.size() + kGuard, kGuardByte);
  Bytes& target = c.alias == Alias::none ? separate : c.alias == Alias::right ? right : left;
  const Bytes& right_used = c.alias == Alias::both ? left : right;
  col::core::reduce(c.op, c.dtype, left.data() + c.offset, right_used.data() + c.offset, target.data() + c.offset,
                    c.count);

  std::size_t errors = 0;
  for (std::size_t i = 0; i < c.count; ++i) {
    errors += !agrees(c.op, c.dtype, target.data() + c.offset, i, element(c.dtype, left_content.data(), i),
                      element(c.dtype, right_content.data(), i));
  }
  for (std::size_t i = 0; i < c.offset; ++i) errors += target[i] != kGuardByte;
  for (std::size_t i = c.offset + left_content.size(); i < target.size(); ++i) errors += target[i] != kGuardByte;
  if (&target != &left) errors += left != padded(left_content, c.offset);
  if (&target != &right) errors += right != padded(right_content, c.offset);
  return errors;
}

const auto kAllDTypes = [] {
  std::vector<DType> all;
  for (int i = 0; i < col::kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (row_of(dtype).is_integer() || is_float(dtype)) all.push_back(dtype);  // the others: other_types_test.cpp
  }
  return all;
}();

}  // namespace

TEST_CASE("reduce: every op on every dtype equals the scalar reference", "[reduce]") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (int op = 0; op < col::kReduceOpCount; ++op) {
    for (const DType dtype : kAllDTypes) {
      if (!col::core::is_reducible(static_cast<ReduceOp>(op), dtype)) continue;
      for (const std::size_t count : {0, 1, 7, 64, 1000}) {
        for (const std::size_t offset : {std::size_t{0}, std::size_t{1}, size_of(dtype)}) {
          for (const Alias alias : {Alias::none, Alias::left, Alias::right, Alias::both}) {
            const Case c{static_cast<ReduceOp>(op), dtype, count, offset, alias};
            INFO(to_string(c.op) << " on " << to_string(dtype) << ", " << count << " elements, " << offset
                                 << " bytes off, alias " << static_cast<int>(alias));
            CHECK(errors_of(c, random) == 0);
          }
        }
      }
    }
  }
}

TEST_CASE("reduce: the bitwise operators are on integers only", "[reduce]") {
  for (const DType dtype : kAllDTypes) {
    for (const auto op : {ReduceOp::band, ReduceOp::bor, ReduceOp::bxor})
      CHECK(col::core::is_reducible(op, dtype) == !is_float(dtype));
    for (const auto op : {ReduceOp::sum, ReduceOp::product, ReduceOp::min, ReduceOp::max, ReduceOp::avg})
      CHECK(col::core::is_reducible(op, dtype));
    CHECK(col::core::is_reducible(Op::premul_sum(2), dtype));
  }
  CHECK_FALSE(col::core::is_reducible(ReduceOp::sum, static_cast<DType>(77)));
  CHECK_FALSE(col::core::is_reducible(static_cast<ReduceOp>(77), DType::int8));
  float value = 1;
  CHECK(error_of([&] { col::core::reduce(ReduceOp::bxor, DType::float32, &value, &value, &value, 1); }).code() ==
        col::ErrorCode::internal);
}

TEST_CASE("reduce: integers wrap", "[reduce]") {
  const std::int8_t bytes[2] = {127, -128};
  std::int8_t byte_result[2];
  const std::int8_t ones[2] = {1, -1};
  col::core::reduce(ReduceOp::sum, DType::int8, bytes, ones, byte_result, 2);
  CHECK(byte_result[0] == -128);
  CHECK(byte_result[1] == 127);

  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  std::int64_t result = 0;
  col::core::reduce(ReduceOp::product, DType::int64, &most, &most, &result, 1);
  CHECK(result == 1);
  const std::int64_t least = std::numeric_limits<std::int64_t>::min();
  col::core::reduce(ReduceOp::sum, DType::int64, &least, &least, &result, 1);
  CHECK(result == 0);
}

TEST_CASE("reduce: min and max keep a NaN from either side, in every float type", "[reduce]") {
  for (const auto op : {ReduceOp::min, ReduceOp::max}) {
    for (const bool nan_left : {true, false}) {
      INFO(to_string(op) << (nan_left ? ", NaN left" : ", NaN right"));
      const auto check = [&](DType dtype, auto nan, auto one) {
        decltype(nan) result{};
        col::core::reduce(op, dtype, nan_left ? &nan : &one, nan_left ? &one : &nan, &result, 1);
        return std::isnan(static_cast<double>(static_cast<float>(result)));
      };
      const float nan = std::numeric_limits<float>::quiet_NaN();
      CHECK(check(DType::float16, col::float16(nan), col::float16(1)));
      CHECK(check(DType::bfloat16, col::bfloat16(nan), col::bfloat16(1)));
      CHECK(check(DType::float8_e4m3fn, col::float8_e4m3fn(nan), col::float8_e4m3fn(1)));
      CHECK(check(DType::float8_e5m2, col::float8_e5m2(nan), col::float8_e5m2(1)));
      CHECK(check(DType::float32, nan, 1.0f));
      CHECK(check(DType::float64, static_cast<double>(nan), 1.0));
    }
  }
}

TEST_CASE("reduce: avg and premul_sum add, a user's function is called once, or never for no elements", "[reduce]") {
  const std::vector<float> left = {1, 2, 3};
  const std::vector<float> right = {10, 20, 30};
  std::vector<float> result(3);
  col::core::reduce(ReduceOp::avg, DType::float32, left.data(), right.data(), result.data(), 3);
  CHECK(result == std::vector<float>{11, 22, 33});
  col::core::reduce(Op::premul_sum(7), DType::float32, left.data(), right.data(), result.data(), 3);
  CHECK(result == std::vector<float>{11, 22, 33});

  int calls = 0;
  const Op subtract = Op::user(
      [&](const void* a, const void* b, void* out, std::size_t count, DType dtype) {
        ++calls;
        CHECK(dtype == DType::float32);
        for (std::size_t i = 0; i < count; ++i)
          static_cast<float*>(out)[i] = static_cast<const float*>(a)[i] - static_cast<const float*>(b)[i];
      },
      false);
  CHECK(col::core::is_reducible(subtract, DType::float32));
  col::core::reduce(subtract, DType::float32, left.data(), right.data(), result.data(), 3);
  CHECK(result == std::vector<float>{-9, -18, -27});
  col::core::reduce(subtract, DType::float32, nullptr, nullptr, nullptr, 0);
  CHECK(calls == 1);
}

TEST_CASE("convert: arrays agree with the conversion of one element", "[reduce]") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  std::vector<float> wide(0x10000);
  std::vector<float> floats(10'001);
  for (auto& value : floats) value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));

  const auto check = [&](DType dtype, auto make) {
    using T = decltype(make);
    using Bits = decltype(T::bits);
    std::vector<Bits> patterns(wide.size()), narrow(floats.size());
    for (std::size_t i = 0; i < patterns.size(); ++i) patterns[i] = static_cast<Bits>(i);
    std::size_t wrong = 0;
    col::core::convert(dtype, patterns.data(), DType::float32, wide.data(), wide.size());
    for (std::size_t i = 0; i < wide.size(); ++i)
      wrong += std::bit_cast<std::uint32_t>(wide[i]) !=
               std::bit_cast<std::uint32_t>(static_cast<float>(T::from_bits(patterns[i])));
    col::core::convert(DType::float32, floats.data(), dtype, narrow.data(), floats.size());
    for (std::size_t i = 0; i < floats.size(); ++i) wrong += narrow[i] != T(floats[i]).bits;
    return wrong;
  };
  CHECK(check(DType::float16, col::float16()) == 0);
  CHECK(check(DType::bfloat16, col::bfloat16()) == 0);
  CHECK(check(DType::float8_e4m3fn, col::float8_e4m3fn()) == 0);
  CHECK(check(DType::float8_e5m2, col::float8_e5m2()) == 0);

  std::vector<float> copy(floats.size());
  col::core::convert(DType::float32, floats.data(), DType::float32, copy.data(), floats.size());
  CHECK(std::memcmp(copy.data(), floats.data(), floats.size() * 4) == 0);
  CHECK(error_of([&] { col::core::convert(DType::float64, wide.data(), DType::float32, copy.data(), 1); }).code() ==
        col::ErrorCode::internal);
  CHECK(col::core::accumulation_type(DType::float16) == DType::float32);
  CHECK(col::core::accumulation_type(DType::bfloat16) == DType::float32);
  CHECK(col::core::accumulation_type(DType::float8_e4m3fn) == DType::float32);
  CHECK(col::core::accumulation_type(DType::float8_e5m2) == DType::float32);
  CHECK(col::core::accumulation_type(DType::float64) == DType::float64);
  CHECK(col::core::accumulation_type(DType::int8) == DType::int8);
}

TEST_CASE("premultiply: whole numbers on integers wrap, any number on floats", "[reduce]") {
  std::vector<std::int8_t> bytes = {1, -2, 100};
  col::core::premultiply(-3, DType::int8, bytes.data(), bytes.size());
  CHECK(bytes == std::vector<std::int8_t>{-3, 6, static_cast<std::int8_t>(-300)});
  std::vector<std::uint64_t> words = {1, 5};
  col::core::premultiply(0x1p63, DType::uint64, words.data(), words.size());
  CHECK(words == std::vector<std::uint64_t>{1ull << 63, 1ull << 63});
  col::core::premultiply(1e300, DType::uint64, words.data(), words.size());  // a multiple of 2^64
  CHECK(words == std::vector<std::uint64_t>{0, 0});

  std::vector<float> floats = {1, -3};
  col::core::premultiply(0.5, DType::float32, floats.data(), floats.size());
  CHECK(floats == std::vector<float>{0.5f, -1.5f});
  col::float16 half(3.0f);
  col::core::premultiply(1.0 / 3, DType::float16, &half, 1);
  CHECK(half.bits == col::float16(3.0f * static_cast<float>(1.0 / 3)).bits);

  CHECK(col::core::is_whole(-7));
  CHECK(col::core::is_whole(1e300));
  CHECK_FALSE(col::core::is_whole(0.5));
  CHECK_FALSE(col::core::is_whole(std::numeric_limits<double>::infinity()));
  CHECK_FALSE(col::core::is_whole(std::nan("")));
  CHECK(error_of([&] { col::core::premultiply(0.5, DType::int8, bytes.data(), 1); }).code() ==
        col::ErrorCode::internal);
}

TEST_CASE("finish_average: integers round toward zero, floats divide in their precision", "[reduce]") {
  std::vector<std::int32_t> ints = {7, -7, 1, -1, std::numeric_limits<std::int32_t>::min()};
  col::core::finish_average(2, DType::int32, ints.data(), ints.size());
  CHECK(ints == std::vector<std::int32_t>{3, -3, 0, 0, std::numeric_limits<std::int32_t>::min() / 2});
  // More ranks than the type can count.
  std::vector<std::int8_t> bytes = {127, -128};
  col::core::finish_average(100, DType::int8, bytes.data(), bytes.size());
  CHECK(bytes == std::vector<std::int8_t>{1, -1});
  col::core::finish_average(200, DType::int8, bytes.data(), bytes.size());
  CHECK(bytes == std::vector<std::int8_t>{0, 0});
  std::vector<std::uint64_t> words = {std::numeric_limits<std::uint64_t>::max()};
  col::core::finish_average(2, DType::uint64, words.data(), 1);
  CHECK(words[0] == std::numeric_limits<std::uint64_t>::max() / 2);

  float single = 1;
  col::core::finish_average(3, DType::float32, &single, 1);
  CHECK(single == 1.0f / 3.0f);
  double wide = 1;
  col::core::finish_average(3, DType::float64, &wide, 1);
  CHECK(wide == 1.0 / 3.0);
  col::bfloat16 brain(10.0f);
  col::core::finish_average(3, DType::bfloat16, &brain, 1);
  CHECK(brain.bits == col::bfloat16(10.0f / 3.0f).bits);
}

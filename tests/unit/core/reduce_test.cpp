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
#include <vector>

#include "common/arithmetic.hpp"
#include "helpers.hpp"
#include "support/catch.hpp"

using col::DType;
using col::Op;
using col::ReduceOp;
using core_test::error_of;

namespace {

using Bytes = std::vector<unsigned char>;

bool is_float(DType dtype) {
  return row_of(dtype).kind == col::ElementKind::floating;
}

// True if an element is what two others give together, in the type itself; avg adds.
bool agrees(ReduceOp op, DType dtype, const unsigned char* result, const unsigned char* left,
            const unsigned char* right) {
  return col::tools::with_element(dtype, [&]<class T>(T got) {
    T x, y;
    std::memcpy(&got, result, sizeof got);
    std::memcpy(&x, left, sizeof x);
    std::memcpy(&y, right, sizeof y);
    using Partial = col::tools::Partial<T>;
    const Partial both = col::tools::Steps().combined<T>(op, static_cast<Partial>(x), static_cast<Partial>(y));
    return col::tools::is_alike(got, static_cast<T>(both));
  });
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
    const std::size_t at = i * size_of(c.dtype);
    errors += !agrees(c.op, c.dtype, &target[c.offset + at], &left_content[at], &right_content[at]);
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

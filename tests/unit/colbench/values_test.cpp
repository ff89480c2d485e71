#include <array>
#include <cstddef>

#include "colbench/rank/values.hpp"
#include "support/catch.hpp"

using namespace col;
using namespace col::colbench;

TEST_CASE("values: an element comes back as it was stored, in every type", "[colbench]") {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    std::array<std::byte, 16> element{};
    for (const std::int64_t value : {1, 8, 100}) {
      if (dtype == DType::boolean && value != 1) continue;
      store_element(element.data(), dtype, value);
      CHECK(load_element(element.data(), dtype) == static_cast<double>(value));
      CHECK(is_element(element.data(), dtype, static_cast<double>(value)));
      CHECK_FALSE(is_element(element.data(), dtype, static_cast<double>(value) + 1));
    }
  }
}

TEST_CASE("values: every byte of an opaque element, and both parts of a complex number, count", "[colbench]") {
  std::array<std::byte, 24> element{};
  for (const std::size_t size : {1, 3, 8, 13, 24}) {
    store_element(element.data(), opaque(size), 100);
    CHECK(is_element(element.data(), opaque(size), 100));
    element[size - 1] ^= std::byte{1};
    CHECK_FALSE(is_element(element.data(), opaque(size), 100));
  }
  for (const DType dtype : {DType::complex64, DType::complex128}) {
    store_element(element.data(), dtype, 3);
    CHECK(is_element(element.data(), dtype, 3));
    element[size_of(dtype) - 1] = std::byte{0x40};
    CHECK_FALSE(is_element(element.data(), dtype, 3));
  }
}

TEST_CASE("values: an average over ranks may be rounded once for each, and no more", "[colbench]") {
  std::array<std::byte, 8> element{};
  store_result(element.data(), DType::bfloat16, 5.375);  // three ranks' 16, each third rounded first
  CHECK(is_element(element.data(), DType::bfloat16, 16.0 / 3, 3));
  CHECK_FALSE(is_element(element.data(), DType::bfloat16, 16.0 / 3));
  CHECK_FALSE(is_element(element.data(), DType::bfloat16, 15.0 / 3, 3));
}

TEST_CASE("values: what two ranks, blocks, places or iterations bring differs more often than not", "[colbench]") {
  const Values values{.seed = 7};
  int equal = 0;
  constexpr int kTries = 1000;
  for (int i = 0; i < kTries; ++i) {
    const auto index = static_cast<std::size_t>(i);
    equal += values.at(0, 0, index, 1) == values.at(1, 0, index, 1);
    equal += values.at(0, 0, index, 1) == values.at(0, 1, index, 1);
    equal += values.at(0, 0, index, 1) == values.at(0, 0, index, 2);
  }
  CHECK(equal < 3 * kTries / 5);  // one in eight by chance
}

TEST_CASE("values: a fold is what the operator says", "[colbench]") {
  const auto folded = [](ReduceOp op, DType dtype) {
    Fold fold(op, dtype);
    for (const std::int64_t value : {3, 8, 5}) fold.add(value);
    return fold.result(3);
  };
  CHECK(folded(ReduceOp::sum, DType::float32) == 16);
  CHECK(folded(ReduceOp::product, DType::float32) == 120);
  CHECK(folded(ReduceOp::product, DType::int8) == 120);
  CHECK(folded(ReduceOp::min, DType::int32) == 3);
  CHECK(folded(ReduceOp::max, DType::int32) == 8);
  CHECK(folded(ReduceOp::avg, DType::int32) == 5);
  CHECK(folded(ReduceOp::avg, DType::float64) == Approx(16.0 / 3));
  CHECK(folded(ReduceOp::bor, DType::uint8) == 15);
  CHECK(folded(ReduceOp::band, DType::uint8) == 0);
  CHECK(folded(ReduceOp::bxor, DType::uint8) == 14);
}

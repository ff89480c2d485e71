// Folds of booleans and complex numbers, against loops that say what they mean.
#include <algorithm>
#include <complex>
#include <cstring>
#include <random>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "common/arithmetic.hpp"
#include "core/kernels/fold.hpp"
#include "core/kernels/instructions.hpp"
#include "core/kernels/mixed.hpp"
#include "core/kernels/reduce.hpp"
#include "helpers.hpp"
#include "support/catch.hpp"

using namespace col;
using core::FoldTarget;
using core::Instructions;
using core::Stores;

namespace {

constexpr std::size_t kMostCount = 700;

// An average over no ranks is a part of one: a sum.
template <class T>
std::vector<T> folded(ReduceOp op, std::size_t ranks, const std::vector<std::vector<T>>& inputs) {
  using E = std::conditional_t<std::is_same_v<T, unsigned char>, bool, T>;  // a boolean, whatever its byte is
  const std::vector<Op> ops = {ranks == 0 && op == ReduceOp::avg ? ReduceOp::sum : op};
  std::vector<T> result;
  for (std::size_t i = 0; i < inputs[0].size(); ++i) {
    const auto input = [&](int k) { return static_cast<E>(inputs[static_cast<std::size_t>(k)][i]); };
    result.push_back(tools::partial_fold<E>(ops, static_cast<int>(ranks), 0, static_cast<int>(inputs.size()), input));
  }
  return result;
}

// The fold by every instruction set, to one target and to two, from odd addresses.
template <class T>
void check_fold(ReduceOp op, DType dtype, std::size_t ranks, const std::vector<std::vector<T>>& inputs) {
  const std::vector<T> expected = folded(op, ranks, inputs);
  const std::size_t count = expected.size(), bytes = count * sizeof(T);
  std::vector<std::vector<std::byte>> places;
  std::vector<const std::byte*> pointers;
  for (const auto& input : inputs) {
    places.emplace_back(bytes + 1);
    if (bytes > 0) std::memcpy(places.back().data() + 1, input.data(), bytes);
    pointers.push_back(places.back().data() + 1);
  }
  for (const Instructions each : core_test::available_instructions()) {
    for (const bool two : {false, true}) {
      INFO(to_string(op) << " on " << to_string(dtype) << ", " << inputs.size() << " inputs of " << count << " by "
                         << to_string(each));
      std::vector<T> first(count + 1), second(count + 1);
      const FoldTarget one{reinterpret_cast<std::byte*>(first.data()), Stores::streaming};
      const FoldTarget other{two ? reinterpret_cast<std::byte*>(second.data()) : nullptr, Stores::cached};
      core::fold_with(core::kernel_table(each), op, dtype, false, pointers, ranks, one, other, count);
      CHECK((bytes == 0 || std::memcmp(first.data(), expected.data(), bytes) == 0));
      if (two) CHECK((bytes == 0 || std::memcmp(second.data(), expected.data(), bytes) == 0));
      CHECK(first[count] == T{});  // nothing is written behind
      CHECK(second[count] == T{});
    }
  }
}

template <class T>
std::vector<std::vector<std::complex<T>>> random_waves(std::mt19937& random, std::size_t inputs, std::size_t count) {
  std::uniform_real_distribution<T> draw(-3, 3);
  std::vector<std::vector<std::complex<T>>> all(inputs);
  for (auto& input : all) {
    for (std::size_t i = 0; i < count; ++i) {
      const T real = draw(random);
      input.emplace_back(real, draw(random));
    }
  }
  return all;
}

template <class T>
void check_complex(DType dtype, std::mt19937& random) {
  using C = std::complex<T>;
  for (const std::size_t inputs : {1, 2, 3, 5, 9}) {
    const std::size_t count = random() % kMostCount;
    const auto all = random_waves<T>(random, inputs, count);
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::product, ReduceOp::avg}) check_fold(op, dtype, 7, all);
    check_fold(ReduceOp::avg, dtype, 0, all);  // part of an average
    const std::vector<C> sum = folded(ReduceOp::sum, 7, all), average = folded(ReduceOp::avg, 7, all);
    std::vector<C> finished(count);
    core::finish(ReduceOp::avg, 7, dtype, false, sum.data(), finished.data(), count);
    CHECK(finished == average);
    std::vector<C> scaled = all[0], expected = all[0];
    for (C& each : expected) each = {each.real() * T{-3}, each.imag() * T{-3}};
    core::premultiply(-3, dtype, scaled.data(), count);
    CHECK(scaled == expected);
  }
}

}  // namespace

TEST_CASE("types: complex numbers are summed, multiplied and averaged by their parts", "[fold]") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  check_complex<float>(DType::complex64, random);
  check_complex<double>(DType::complex128, random);
}

TEST_CASE("types: booleans are combined as logical values, whatever their bytes are", "[fold]") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (const ReduceOp op : {ReduceOp::band, ReduceOp::min, ReduceOp::bor, ReduceOp::max, ReduceOp::bxor}) {
    for (const std::size_t inputs : {2, 3, 8}) {
      const std::size_t count = random() % kMostCount;
      std::vector<std::vector<unsigned char>> all(inputs, std::vector<unsigned char>(count));
      for (auto& input : all)
        for (unsigned char& value : input) value = random() % 2 == 0 ? 0 : static_cast<unsigned char>(random());
      check_fold(op, DType::boolean, 0, all);
    }
  }
}

TEST_CASE("types: which operators are defined on which kinds", "[fold]") {
  const auto defined = [](DType dtype) {
    std::string text;
    for (int op = 0; op < kReduceOpCount; ++op) {
      if (core::is_reducible(static_cast<ReduceOp>(op), dtype))
        text += fmt::format("{} ", to_string(static_cast<ReduceOp>(op)));
    }
    return text;
  };
  for (const DType dtype : {DType::int16, DType::uint16}) CHECK(defined(dtype) == defined(DType::int32));
  CHECK(defined(DType::boolean) == "min max band bor bxor ");
  CHECK(defined(DType::complex64) == "sum product avg ");
  CHECK(defined(DType::complex128) == "sum product avg ");
  CHECK(defined(opaque(4)).empty());
  const Op user = Op::user([](auto...) {}, true);
  for (const DType dtype : {DType::boolean, DType::complex64, opaque(3)}) CHECK(core::is_reducible(user, dtype));
  CHECK_FALSE(core::is_reducible(user, DType::bytes));
  CHECK_FALSE(core::is_reducible(Op::premul_sum(2), DType::boolean));
  CHECK(core::is_reducible(Op::premul_sum(2), DType::complex64));
}

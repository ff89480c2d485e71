// fold() with the kernels of every instruction set that this processor has, against one element after the other.
#include "core/kernels/fold.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "core/kernels/element.hpp"
#include "core/kernels/few_fold.hpp"
#include "core/kernels/instructions.hpp"
#include "core/kernels/mixed.hpp"
#include "core/kernels/operators.hpp"
#include "core/kernels/reduce.hpp"
#include "helpers.hpp"
#include "support/catch.hpp"

using col::DType;
using col::Op;
using col::ReduceOp;
using col::core::FoldTarget;
using col::core::Instructions;
using col::core::Stores;
using core_test::error_of;

namespace {

constexpr std::byte kGuard{0xcd};
constexpr std::size_t kGuardBytes = 80;
constexpr std::array<std::size_t, 8> kInputCounts = {1, 2, 3, 4, 5, 8, 9, 17};

// The others: other_types_test.cpp.
bool is_number(DType dtype) {
  return row_of(dtype).is_integer() || row_of(dtype).kind == col::ElementKind::floating;
}

// Bytes at a chosen distance from a cache line, with guards on both sides.
class Array {
 public:
  Array(std::size_t bytes, std::size_t skew) : bytes_(bytes), memory_(64 + skew + bytes + 2 * kGuardBytes, kGuard) {
    begin_ = kGuardBytes + skew + (64 - (reinterpret_cast<std::uintptr_t>(memory_.data()) + kGuardBytes) % 64) % 64;
  }

  std::byte* data() { return memory_.data() + begin_; }
  const std::byte* data() const { return memory_.data() + begin_; }
  std::size_t bytes() const { return bytes_; }
  bool guards_are_whole() const {
    const auto is_guard = [](std::byte value) { return value == kGuard; };
    return std::all_of(memory_.begin(), memory_.begin() + static_cast<std::ptrdiff_t>(begin_), is_guard) &&
           std::all_of(memory_.begin() + static_cast<std::ptrdiff_t>(begin_ + bytes_), memory_.end(), is_guard);
  }

 private:
  std::size_t bytes_;
  std::size_t begin_ = 0;
  std::vector<std::byte> memory_;
};

void randomize(Array& array, DType dtype, std::mt19937& random) {
  core_test::randomize({array.data(), array.bytes()}, dtype, random);
}

// One call of fold().
struct Call {
  ReduceOp op;
  DType dtype;
  bool wide = false;
  std::size_t ranks = 0;
  std::size_t count = 0;
  std::vector<const std::byte*> inputs;

  DType input_dtype() const { return wide ? col::core::accumulation_type(dtype) : dtype; }
  std::string text() const {
    return std::string(to_string(op)) + " on " + std::string(to_string(dtype)) + (wide ? " from float32, " : ", ") +
           std::to_string(inputs.size()) + " inputs of " + std::to_string(count) + ", ranks " + std::to_string(ranks);
  }
};

struct Expected {
  std::vector<std::byte> bytes;
  std::vector<bool> any_nan;  // whose payload nothing is said about: a NaN has met another
};

template <class Operator, DType kFrom, DType kTo>
void expect_elements(const Call& call, Expected& expected) {
  using T = typename col::core::Element<kTo>::Compute;
  for (std::size_t i = 0; i < call.count; ++i) {
    T value = col::core::load<kFrom>(call.inputs[0], i);
    for (std::size_t k = 1; k < call.inputs.size(); ++k) {
      const T right = col::core::load<kFrom>(call.inputs[k], i);
      if (value != value && right != right) expected.any_nan[i] = true;
      value = Operator::apply(value, right);
    }
    if (call.op == ReduceOp::avg && call.ranks != 0) {
      if constexpr (std::is_integral_v<T>) {
        using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
        value = static_cast<T>(static_cast<Wide>(value) / static_cast<Wide>(call.ranks));
      } else {
        value = value / static_cast<T>(call.ranks);
      }
    }
    col::core::store<kTo>(expected.bytes.data(), i, value);
  }
  // One input that is not divided is copied as it is, whatever kind of NaN it holds.
  const bool divided = call.op == ReduceOp::avg && call.ranks != 0;
  if (call.inputs.size() == 1 && kFrom == kTo && !divided && call.count > 0)
    std::memcpy(expected.bytes.data(), call.inputs[0], expected.bytes.size());
}

template <class Operator>
Expected expect_with(const Call& call) {
  Expected expected{std::vector<std::byte>(call.count * size_of(call.dtype)), std::vector<bool>(call.count)};
  col::core::dispatch(call.dtype, [&]<DType kTo>(std::integral_constant<DType, kTo>) {
    constexpr bool kBitwise = std::is_same_v<Operator, col::core::BitAnd> ||
                              std::is_same_v<Operator, col::core::BitOr> || std::is_same_v<Operator, col::core::BitXor>;
    if constexpr (!kBitwise || col::core::is_integer<kTo>) {
      if (call.wide && col::core::is_narrow(kTo)) return expect_elements<Operator, DType::float32, kTo>(call, expected);
      expect_elements<Operator, kTo, kTo>(call, expected);
    }
  });
  return expected;
}

Expected expect(const Call& call) {
  switch (call.op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
      return expect_with<col::core::Sum>(call);
    case ReduceOp::product:
      return expect_with<col::core::Product>(call);
    case ReduceOp::min:
      return expect_with<col::core::Min>(call);
    case ReduceOp::max:
      return expect_with<col::core::Max>(call);
    case ReduceOp::band:
      return expect_with<col::core::BitAnd>(call);
    case ReduceOp::bor:
      return expect_with<col::core::BitOr>(call);
    case ReduceOp::bxor:
      return expect_with<col::core::BitXor>(call);
  }
  return {};
}

// The first element that is not as expected, in words; empty when all are.
std::string first_difference(DType dtype, const Expected& expected, const std::byte* got) {
  std::string difference;
  col::core::dispatch(dtype, [&]<DType kDType>(std::integral_constant<DType, kDType>) {
    using Storage = typename col::core::Element<kDType>::Storage;
    for (std::size_t i = 0; i < expected.any_nan.size() && difference.empty(); ++i) {
      Storage want, have;
      std::memcpy(&want, expected.bytes.data() + i * sizeof(Storage), sizeof(Storage));
      std::memcpy(&have, got + i * sizeof(Storage), sizeof(Storage));
      if (std::memcmp(&want, &have, sizeof(Storage)) == 0) continue;
      const auto value = col::core::load<kDType>(got, i);
      if (expected.any_nan[i] && value != value) continue;
      difference = "element " + std::to_string(i) + ": " + std::to_string(have) + " instead of " + std::to_string(want);
    }
  });
  return difference;
}

void fold_with(Instructions instructions, const Call& call, FoldTarget first, FoldTarget second) {
  col::core::fold_with(kernel_table(instructions), call.op, call.dtype, call.wide, call.inputs, call.ranks, first,
                       second, call.count);
}

std::size_t pick(std::mt19937& random, std::initializer_list<std::size_t> choices) {
  return *(choices.begin() + random() % choices.size());
}

// A fold of random inputs at random places into random kinds of targets.
void check_one(Instructions instructions, Call call, std::size_t input_count, std::mt19937& random) {
  const std::size_t bytes = call.count * size_of(call.dtype);
  std::vector<Array> inputs;
  const std::size_t common = random() % 64;
  const bool together = random() % 2 == 0;
  for (std::size_t k = 0; k < input_count; ++k) {
    inputs.emplace_back(call.count * size_of(call.input_dtype()), together ? common : random() % 64);
    randomize(inputs.back(), call.input_dtype(), random);
  }
  for (const Array& input : inputs) call.inputs.push_back(input.data());
  const Expected expected = expect(call);

  const std::size_t size = size_of(call.dtype);
  Array other(bytes, pick(random, {0, random() % 64, random() % 16 * size}));
  Array another(bytes, pick(random, {0, random() % 64, random() % 16 * size}));
  const bool may_alias = call.input_dtype() == call.dtype;
  Array& result = may_alias && random() % 3 == 0 ? inputs[random() % input_count] : other;
  FoldTarget first{result.data(), random() % 2 == 0 ? Stores::cached : Stores::streaming};
  FoldTarget second;
  if (random() % 2 == 0) second = {another.data(), random() % 2 == 0 ? Stores::cached : Stores::streaming};
  const bool swapped = random() % 4 == 0;
  if (swapped) std::swap(first, second);

  INFO(to_string(instructions) << ": " << call.text() << ", to " << first.data << " and " << second.data
                               << (first.stores == Stores::streaming ? ", first streams" : "")
                               << (second.stores == Stores::streaming ? ", second streams" : ""));
  fold_with(instructions, call, first, second);
  for (const FoldTarget& target : {first, second}) {
    if (target.data == nullptr) continue;
    const std::string difference = first_difference(call.dtype, expected, target.data);
    if (!difference.empty()) FAIL(difference);
  }
  for (const Array& input : inputs) {
    if (!input.guards_are_whole()) FAIL("written beside an input");
  }
  if (!other.guards_are_whole() || !another.guards_are_whole()) FAIL("written beside a target");
}

// Around the sizes of vectors (2 to 64 elements) and of tiles (up to 512).
std::size_t pick_count(std::mt19937& random) {
  const std::size_t base = pick(random, {0, 4, 8, 16, 32, 64, 128, 256, 512, 1024});
  const std::size_t count = base + random() % 3;
  return count > 0 && random() % 2 == 0 ? count - 1 : count;
}

}  // namespace

// Ranks that all reduce the same have their results at different addresses.
TEST_CASE("fold: of two NaNs the same one stays wherever the result is", "[fold]") {
  constexpr std::size_t kCount = 1009;
  std::mt19937 random(7);
  for (const DType dtype :
       {DType::float8_e4m3fn, DType::float8_e5m2, DType::bfloat16, DType::float16, DType::float32}) {
    const std::size_t size = col::size_of(dtype);
    // Each element has one of few bytes, so that many are NaNs of either sign.
    std::vector<std::vector<std::byte>> inputs(3, std::vector<std::byte>(kCount * size));
    constexpr unsigned char kBytes[] = {0x7f, 0xff, 0x7f, 0xff, 0x3c, 0x01};
    for (auto& input : inputs)
      std::generate(input.begin(), input.end(), [&] { return std::byte{kBytes[random() % std::size(kBytes)]}; });
    const std::vector<const std::byte*> pointers = {inputs[0].data(), inputs[1].data(), inputs[2].data()};
    for (const Op& op :
         {Op(ReduceOp::sum), Op(ReduceOp::product), Op(ReduceOp::min), Op(ReduceOp::max), Op(ReduceOp::avg)}) {
      for (const Instructions instructions : core_test::available_instructions()) {
        std::vector<std::byte> first, memory(kCount * size + 64);
        for (std::size_t offset = 0; offset < 64; ++offset) {
          std::byte* const target = memory.data() + offset;
          col::core::fold_with(kernel_table(instructions), op, dtype, false, pointers, 3, {target}, {}, kCount);
          if (first.empty()) first.assign(target, target + kCount * size);
          INFO(to_string(instructions) << ", " << col::to_string(dtype) << ", target moved by " << offset);
          REQUIRE(std::equal(first.begin(), first.end(), target));
        }
      }
    }
  }
}

TEST_CASE("fold: every operator, type and number of inputs, by every instruction set", "[fold]") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (const Instructions instructions : core_test::available_instructions()) {
    for (int op = 0; op < col::kReduceOpCount; ++op) {
      for (int dtype = 0; dtype < col::kDTypeCount; ++dtype) {
        if (!col::core::is_reducible(static_cast<ReduceOp>(op), static_cast<DType>(dtype))) continue;
        if (!is_number(static_cast<DType>(dtype))) continue;
        for (const std::size_t inputs : kInputCounts) {
          for (int draw = 0; draw < 12; ++draw) {
            Call call{static_cast<ReduceOp>(op), static_cast<DType>(dtype), false, 0, 0, {}};
            call.wide = random() % 3 == 0;
            call.ranks = pick(random, {0, inputs, 3, 200});
            call.count = pick_count(random);
            check_one(instructions, call, inputs, random);
          }
        }
      }
    }
  }
}

TEST_CASE("fold: what was found out once gives what each fold gives", "[fold]") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (int o = 0; o < col::kReduceOpCount; ++o) {
    for (int type = 0; type < col::kDTypeCount; ++type) {
      const auto op = static_cast<ReduceOp>(o);
      const auto dtype = static_cast<DType>(type);
      if (!col::core::is_reducible(op, dtype) || !is_number(dtype)) continue;
      for (const std::size_t ranks : {2, 3, 9}) {
        const col::core::FewFold few = col::core::few_fold(op, dtype, ranks);
        const bool divides_integers = op == ReduceOp::avg && row_of(dtype).is_integer();
        CHECK((few.kernel == nullptr) == divides_integers);
        if (few.kernel == nullptr) continue;
        for (const std::size_t count : {1, 2, 13, 104}) {
          Call call{op, dtype, false, ranks, count, {}};
          std::vector<Array> inputs;
          for (std::size_t k = 0; k < ranks; ++k) {
            inputs.emplace_back(count * size_of(dtype), random() % 64);
            randomize(inputs.back(), dtype, random);
          }
          for (const Array& input : inputs) call.inputs.push_back(input.data());
          Array result(count * size_of(dtype), random() % 64);
          few(call.inputs.data(), ranks, result.data(), count);
          INFO(call.text());
          CHECK(first_difference(dtype, expect(call), result.data()) == "");
          CHECK(result.guards_are_whole());
        }
      }
    }
  }
  const Op users = Op::user([](const void*, const void*, void*, std::size_t, DType) {}, true);
  CHECK(col::core::few_fold(users, DType::int32, 2).kernel == nullptr);
}

TEST_CASE("fold: every 16-bit float against every class of another", "[fold]") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::product, ReduceOp::min, ReduceOp::max, ReduceOp::avg}) {
      Array every(2 * 65536, 0), others(2 * 65536, 0), result(2 * 65536, 0);
      for (std::uint32_t i = 0; i < 65536; ++i) {
        const auto bits = static_cast<std::uint16_t>(i);
        std::memcpy(every.data() + 2 * i, &bits, 2);
      }
      randomize(others, dtype, random);
      for (const bool alone : {true, false}) {
        Call call{op, dtype, false, 2, 65536, {every.data(), others.data()}};
        if (alone) call.inputs.pop_back();
        const Expected expected = expect(call);
        for (const Instructions instructions : core_test::available_instructions()) {
          INFO(to_string(instructions) << ": " << call.text());
          fold_with(instructions, call, {result.data()}, {});
          CHECK(first_difference(dtype, expected, result.data()) == "");
        }
      }
    }
  }
}

TEST_CASE("fold: the same as reduce_mixed() and finish() one after the other", "[fold]") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  constexpr std::size_t kCount = 777;
  for (int type = 0; type < col::kDTypeCount; ++type) {
    const auto dtype = static_cast<DType>(type);
    if (!is_number(dtype)) continue;
    const std::size_t wide_bytes = kCount * size_of(col::core::accumulation_type(dtype));
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::product, ReduceOp::min, ReduceOp::max, ReduceOp::avg}) {
      Call call{op, dtype, false, 5, kCount, {}};
      std::vector<Array> inputs;
      for (int k = 0; k < 5; ++k) {
        inputs.emplace_back(kCount * size_of(dtype), 0);
        randomize(inputs.back(), dtype, random);
      }
      for (const Array& input : inputs) call.inputs.push_back(input.data());
      Array partial(wide_bytes, 0), stepwise(kCount * size_of(dtype), 0), result(kCount * size_of(dtype), 0);
      col::core::reduce_mixed(op, dtype, false, call.inputs[0], false, call.inputs[1], true, partial.data(), kCount);
      for (std::size_t k = 2; k < 5; ++k)
        col::core::reduce_mixed(op, dtype, true, partial.data(), false, call.inputs[k], true, partial.data(), kCount);
      col::core::finish(op, 5, dtype, true, partial.data(), stepwise.data(), kCount);
      Expected expected = expect(call);
      expected.bytes.assign(stepwise.data(), stepwise.data() + stepwise.bytes());
      INFO(call.text());
      for (const Instructions instructions : core_test::available_instructions()) {
        fold_with(instructions, call, {result.data()}, {});
        CHECK(first_difference(dtype, expected, result.data()) == "");
      }
    }
  }
}

TEST_CASE("fold: a range in pieces gives the same bits as the whole", "[fold]") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  constexpr std::size_t kCount = 3001;
  for (const Instructions instructions : core_test::available_instructions()) {
    for (const DType dtype :
         {DType::float32, DType::float16, DType::bfloat16, DType::float8_e4m3fn, DType::float64, DType::int8}) {
      const std::size_t size = size_of(dtype);
      std::vector<Array> inputs;
      Call call{ReduceOp::avg, dtype, false, 3, kCount, {}};
      for (int k = 0; k < 3; ++k) {
        inputs.emplace_back(kCount * size, random() % 64);
        randomize(inputs.back(), dtype, random);
      }
      for (const Array& input : inputs) call.inputs.push_back(input.data());
      Array whole(kCount * size, 0), pieces(kCount * size, 16);
      fold_with(instructions, call, {whole.data()}, {});
      for (std::size_t begin = 0; begin < kCount;) {
        Call piece = call;
        piece.count = std::min<std::size_t>(kCount - begin, random() % 300);
        for (const std::byte*& input : piece.inputs) input += begin * size;
        fold_with(instructions, piece, {pieces.data() + begin * size, Stores::streaming}, {});
        begin += piece.count;
      }
      Expected expected = expect(call);
      expected.bytes.assign(whole.data(), whole.data() + whole.bytes());
      INFO(to_string(instructions) << ": " << call.text());
      CHECK(first_difference(dtype, expected, pieces.data()) == "");
    }
  }
}

TEST_CASE("fold: a user's function is applied in order, pair by pair, and a target may be any input", "[fold]") {
  constexpr std::size_t kCount = 20'000;  // more than a block
  const Op op = Op::user(
      [](const void* left, const void* right, void* result, std::size_t count, DType dtype) {
        REQUIRE(dtype == DType::uint32);
        for (std::size_t i = 0; i < count; ++i) {
          const auto value = 3 * col::core::load<DType::uint32>(static_cast<const std::byte*>(left), i) +
                             col::core::load<DType::uint32>(static_cast<const std::byte*>(right), i);
          col::core::store<DType::uint32>(static_cast<std::byte*>(result), i, value);
        }
      },
      false, "3x+y");
  for (const std::size_t n : {1, 2, 3, 5}) {
    for (std::size_t target = 0; target <= n; ++target) {
      for (const Stores stores : {Stores::cached, Stores::streaming}) {
        std::vector<std::vector<std::uint32_t>> inputs(n, std::vector<std::uint32_t>(kCount));
        std::vector<std::uint32_t> expected(kCount), result(kCount), copy(kCount);
        std::vector<const std::byte*> pointers;
        for (std::size_t k = 0; k < n; ++k) {
          for (std::size_t i = 0; i < kCount; ++i) {
            inputs[k][i] = static_cast<std::uint32_t>(i * 7919 + k);
            expected[i] = k == 0 ? inputs[k][i] : 3 * expected[i] + inputs[k][i];
          }
          pointers.push_back(reinterpret_cast<const std::byte*>(inputs[k].data()));
        }
        auto& first = target < n ? inputs[target] : result;
        col::core::fold(op, DType::uint32, false, pointers, n, {reinterpret_cast<std::byte*>(first.data()), stores},
                        {reinterpret_cast<std::byte*>(copy.data()), Stores::streaming}, kCount);
        INFO(n << " inputs, target " << target);
        CHECK((first == expected));
        CHECK((copy == expected));
      }
    }
  }
}

TEST_CASE("fold: no elements touch nothing, and what has no kernel is refused", "[fold]") {
  const std::array<const std::byte*, 2> nothing = {nullptr, nullptr};
  CHECK_NOTHROW(col::core::fold(ReduceOp::sum, DType::int8, false, nothing, 0, {}, {}, 0));
  CHECK_NOTHROW(col::core::copy(nullptr, nullptr, 0, Stores::streaming));
  std::array<float, 2> values = {1, 2};
  const auto* data = reinterpret_cast<const std::byte*>(values.data());
  const std::array<const std::byte*, 2> inputs = {data, data};
  const auto refused = [&](const Op& op, DType dtype, bool wide) {
    return error_of([&] { col::core::fold(op, dtype, wide, inputs, 0, {}, {}, 2); }).code();
  };
  CHECK(refused(ReduceOp::bxor, DType::float32, false) == col::ErrorCode::internal);
  CHECK(refused(ReduceOp::bor, DType::float16, true) == col::ErrorCode::internal);
  CHECK(refused(Op::user([](auto...) {}, true), DType::float16, true) == col::ErrorCode::internal);
  CHECK_NOTHROW(col::core::fold(ReduceOp::sum, DType::float32, false, inputs, 0, {}, {}, 2));
  CHECK(values == std::array<float, 2>{1, 2});
}

TEST_CASE("fold: copies of every size and alignment, past the caches or not", "[fold]") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (int draw = 0; draw < 3000; ++draw) {
    const std::size_t bytes = pick(random, {0, 16, 64, 128, 512, 4096, 20'000}) + random() % 80;
    Array from(bytes, random() % 64), to(bytes, random() % 64);
    randomize(from, DType::uint8, random);
    col::core::copy(to.data(), from.data(), bytes, draw % 4 == 0 ? Stores::cached : Stores::streaming);
    INFO(bytes << " bytes, draw " << draw);
    REQUIRE(std::memcmp(to.data(), from.data(), bytes) == 0);
    REQUIRE(to.guards_are_whole());
  }
}

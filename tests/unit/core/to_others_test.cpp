// What goes to other processors is what fold() and memcpy() give, wherever it lies and however long it is.
#include "core/kernels/to_others.hpp"

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/kernels/reduce.hpp"
#include "support/catch.hpp"

using col::DType;
using col::Op;
using col::ReduceOp;
using col::core::FoldTarget;
using col::core::Stores;

namespace {

constexpr std::size_t kMargin = 128;
constexpr std::byte kUntouched{0xa5};

// Bytes with a margin on both sides, at any alignment.
struct Place {
  Place(std::size_t bytes, std::size_t shift) : all(bytes + 2 * kMargin, kUntouched), begin(kMargin + shift % 64) {
    size = bytes;
  }
  std::byte* data() { return all.data() + begin; }
  bool has_margins() const {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if ((i < begin || i >= begin + size) && all[i] != kUntouched) return false;
    }
    return true;
  }

  std::vector<std::byte> all;
  std::size_t begin, size = 0;
};

void differ(const void* left, const void* right, void* result, std::size_t count, DType dtype) {
  for (std::size_t i = 0; i < count * col::size_of(dtype); ++i)
    static_cast<std::byte*>(result)[i] =
        static_cast<const std::byte*>(left)[i] ^ static_cast<const std::byte*>(right)[i];
}

}  // namespace

TEST_CASE("to others: a copy of any length, from and to any place", "[fold]") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (int draw = 0; draw < 300; ++draw) {
    const std::size_t bytes = random() % (draw % 3 == 0 ? 300'000 : 9'000);
    Place from(bytes, random()), to(bytes, random());
    for (std::size_t i = 0; i < bytes; ++i) from.data()[i] = static_cast<std::byte>(random());
    INFO(bytes << " bytes");
    col::core::copy_to_others(to.data(), from.data(), bytes, draw % 2 == 0 ? Stores::cached : Stores::streaming);
    REQUIRE(std::memcmp(to.data(), from.data(), bytes) == 0);
    REQUIRE(to.has_margins());
  }
  CHECK_NOTHROW(col::core::copy_to_others(nullptr, nullptr, 0));
}

TEST_CASE("to others: a fold gives both targets what fold() gives", "[fold]") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const DType dtypes[] = {DType::float32, DType::float64, DType::bfloat16, DType::int8, DType::int32};
  const Op ops[] = {Op(ReduceOp::sum), Op(ReduceOp::max), Op(ReduceOp::avg), Op::user(differ, true)};
  for (int draw = 0; draw < 300; ++draw) {
    const DType dtype = dtypes[random() % std::size(dtypes)];
    const Op& op = ops[random() % std::size(ops)];
    const std::size_t size = col::size_of(dtype), count = random() % (draw % 2 == 0 ? 30'000 : 2'000);
    const std::size_t ranks = 1 + random() % 4, bytes = count * size;
    std::vector<Place> inputs;
    std::vector<const std::byte*> sources;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      inputs.emplace_back(bytes, random() % 8 * size);
      for (std::size_t i = 0; i < bytes; ++i) inputs.back().data()[i] = static_cast<std::byte>(random() % 64);
    }
    for (Place& input : inputs) sources.push_back(input.data());
    Place expected(bytes, 0), own(bytes, random() % 8 * size), theirs(bytes, random() % 8 * size);
    col::core::fold(op, dtype, false, sources, ranks, {expected.data()}, {}, count);
    const auto kind = random() % 3;
    // Where the results replace an input, as in a call in place, or a slot.
    const bool own_is_input = random() % 4 == 0, theirs_are = random() % 4 == 0 && ranks > 1;
    std::byte* const own_at = own_is_input ? inputs[0].data() : own.data();
    std::byte* const theirs_at = theirs_are ? inputs[1].data() : theirs.data();
    const FoldTarget target{kind == 0 ? nullptr : own_at, kind == 2 ? Stores::streaming : Stores::cached};
    INFO(fmt::format("{} of {} {}, {} ranks, own: {}{}{}", op.name(), count, to_string(dtype), ranks,
                     kind == 0   ? "none"
                     : kind == 1 ? "cached"
                                 : "streaming",
                     own_is_input ? ", an input" : "", theirs_are ? ", theirs an input" : ""));
    col::core::fold_to_others(op, dtype, false, sources, ranks, target,
                              {theirs_at, random() % 2 == 0 ? Stores::cached : Stores::streaming}, count);
    REQUIRE((count == 0 || std::memcmp(theirs_at, expected.data(), bytes) == 0));
    REQUIRE((kind == 0 || count == 0 || std::memcmp(own_at, expected.data(), bytes) == 0));
    REQUIRE(own.has_margins());
    REQUIRE(theirs.has_margins());
  }
}

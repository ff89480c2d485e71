#include "core/kernels/store_choice.hpp"

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include <catch2/catch.hpp>

namespace {

using col::core::StoreChoice;
using col::core::Stores;
using Readers = StoreChoice::Readers;

constexpr std::size_t kBytes = std::size_t{1} << 20;

// A machine on which each way takes so long for kBytes. Returns how many of `copies` went past the caches.
int streamed_of(StoreChoice& choice, int copies, std::uint64_t cached, std::uint64_t streaming,
                Readers readers = Readers::others) {
  int streamed = 0;
  for (int i = 0; i < copies; ++i) {
    const auto [stores, is_timed] = choice.next(readers);
    streamed += stores == Stores::streaming ? 1 : 0;
    if (is_timed) choice.took(stores, stores == Stores::cached ? cached : streaming, kBytes);
  }
  return streamed;
}

}  // namespace

TEST_CASE("store choice: what is clearly faster is taken, and the other way tried now and then", "[store_choice]") {
  constexpr int kMany = 64 * 10;
  StoreChoice shared_cache;
  CHECK(shared_cache.next(Readers::others).stores == Stores::cached);
  // Two that make the way known, and one in 64.
  CHECK(streamed_of(shared_cache, kMany, 100'000, 80'000) <= 2 + kMany / 64);
  StoreChoice apart;
  CHECK(streamed_of(apart, kMany, 500'000, 100'000) >= kMany - 2 - kMany / 64);
  // A rank that also reads pays twice for what is in memory.
  StoreChoice half;
  streamed_of(half, kMany, 250'000, 100'000, Readers::all);
  CHECK(half.best(Readers::others) == Stores::streaming);
  CHECK(half.best(Readers::all) == Stores::cached);
  CHECK(apart.best(Readers::all) == Stores::streaming);
}

TEST_CASE("store choice: a machine that changes is followed, there and back", "[store_choice]") {
  constexpr int kMany = 64 * 10;
  StoreChoice choice;
  streamed_of(choice, kMany, 100'000, 100'000);
  CHECK(choice.best(Readers::others) == Stores::cached);
  // Two slow copies are enough, of those that are timed.
  CHECK(streamed_of(choice, kMany, 500'000, 100'000) >= kMany - 3 * 8 - kMany / 64);
  CHECK(choice.best(Readers::others) == Stores::streaming);
  // The way back is seen by one try.
  CHECK(streamed_of(choice, kMany, 100'000, 100'000) <= 64 + kMany / 64);
  CHECK(choice.best(Readers::others) == Stores::cached);
}

TEST_CASE("store choice: one late copy changes nothing, and what two false times have changed is mended",
          "[store_choice]") {
  StoreChoice choice;
  streamed_of(choice, 128, 100'000, 100'000);
  choice.took(Stores::cached, 50'000'000, kBytes);
  CHECK(choice.best(Readers::others) == Stores::cached);
  choice.took(Stores::cached, 100'000, kBytes);
  choice.took(Stores::streaming, 1, kBytes);  // a clock that stood still
  choice.took(Stores::streaming, 0, kBytes);
  CHECK(choice.best(Readers::others) == Stores::streaming);
  streamed_of(choice, 32, 100'000, 100'000);
  CHECK(choice.best(Readers::others) == Stores::cached);
}

TEST_CASE("store choice: copies are right in both ways, of any length", "[store_choice]") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  StoreChoice choice;
  for (int draw = 0; draw < 300; ++draw) {
    const std::size_t bytes = random() % (4 * StoreChoice::kLeastTimed), shift = random() % 64;
    std::vector<std::byte> from(bytes + shift), to(bytes + 64);
    for (std::byte& byte : from) byte = static_cast<std::byte>(random());
    choice.copy(to.data() + shift % 7, from.data() + shift, bytes, draw % 3 == 0 ? Readers::all : Readers::others);
    REQUIRE((bytes == 0 || std::memcmp(to.data() + shift % 7, from.data() + shift, bytes) == 0));
  }
}

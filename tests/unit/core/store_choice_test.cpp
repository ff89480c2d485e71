#include "core/kernels/store_choice.hpp"

#include <array>
#include <cstdint>
#include <utility>

#include <catch2/catch.hpp>

namespace {

using col::core::StoreChoice;
using Readers = StoreChoice::Readers;
using Terms = StoreChoice::Terms;
using Way = StoreChoice::Way;

constexpr std::size_t kBytes = std::size_t{1} << 20;
constexpr unsigned kRound = 32;
constexpr Terms kOnePart{}, kManyParts{Readers::others, kRound}, kOnePartForAll{Readers::all};
// The first trials of three ways, and what comes between two of them.
constexpr int kFirstTrials = 3 * StoreChoice::kTrial + kRound;
constexpr int kPeriod = StoreChoice::kBetween * (StoreChoice::kTrial + kRound);

// What each way takes for kBytes.
struct MachineTimes {
  std::uint64_t again, onward, past;

  std::uint64_t of(Way way) const { return way == Way::again ? again : way == Way::onward ? onward : past; }
};

// Writes so many times. Returns how often in each way.
std::array<int, 3> write_times(StoreChoice& choice, Terms terms, int times, const MachineTimes& machine) {
  std::array<int, 3> counts{};
  for (int i = 0; i < times; ++i) {
    const auto [way, is_timed] = choice.next(terms);
    ++counts[static_cast<std::size_t>(way)];
    if (is_timed) choice.took(way, machine.of(way), kBytes);
  }
  return counts;
}

}  // namespace

TEST_CASE("store choice: what is clearly faster is taken, and the others are tried now and then", "[store_choice]") {
  constexpr MachineTimes kShared{100'000, 90'000, 80'000}, kFarCache{300'000, 100'000, 90'000},
      kFar{900'000, 800'000, 100'000};
  for (const auto& [machine, best] : {std::pair{kShared, Way::again}, {kFarCache, Way::onward}, {kFar, Way::past}}) {
    StoreChoice choice;
    CHECK(choice.next(kManyParts).way == Way::again);
    write_times(choice, kManyParts, kFirstTrials, machine);
    CHECK(choice.best(kManyParts) == best);
    const auto counts = write_times(choice, kManyParts, 4 * kPeriod, machine);
    CHECK(counts[static_cast<std::size_t>(best)] >= 4 * kPeriod - 5 * static_cast<int>(StoreChoice::kTrial + kRound));
    for (const int count : counts) CHECK(count > 0);
  }
}

TEST_CASE("store choice: without more parts, none is gone onward to", "[store_choice]") {
  StoreChoice choice;
  CHECK(write_times(choice, kOnePart, 8 * kPeriod, {300'000, 1, 250'000})[1] == 0);
  CHECK(choice.best(kOnePart) == Way::again);
  // As soon as there are some, they are tried.
  CHECK(write_times(choice, kManyParts, kFirstTrials, {300'000, 100'000, 250'000})[1] >= static_cast<int>(kRound));
  CHECK(choice.best(kManyParts) == Way::onward);
  CHECK(choice.best(kOnePart) == Way::again);
}

TEST_CASE("store choice: a rank that also reads pays twice for what is in memory", "[store_choice]") {
  StoreChoice choice;
  write_times(choice, kOnePart, kFirstTrials, {250'000, 0, 100'000});
  CHECK(choice.best(kOnePart) == Way::past);
  CHECK(choice.best(kOnePartForAll) == Way::again);
  write_times(choice, kOnePart, 2 * kPeriod, {500'000, 0, 100'000});
  CHECK(choice.best(kOnePartForAll) == Way::past);
  // So do others, where lines would have left the near caches anyway.
  write_times(choice, kManyParts, 4 * kPeriod, {500'000, 180'000, 100'000});
  CHECK(choice.best(kOnePart) == Way::past);
  CHECK(choice.best(kManyParts) == Way::onward);
  write_times(choice, kManyParts, 4 * kPeriod, {500'000, 320'000, 100'000});
  CHECK(choice.best(kManyParts) == Way::past);
}

TEST_CASE("store choice: a machine that changes is followed, there and back", "[store_choice]") {
  StoreChoice choice;
  write_times(choice, kManyParts, kFirstTrials, {100'000, 100'000, 100'000});
  CHECK(choice.best(kManyParts) == Way::again);
  // Two slow ones are enough, of those that are timed.
  write_times(choice, kManyParts, 3 * StoreChoice::kTimed, {500'000, 100'000, 400'000});
  CHECK(choice.best(kManyParts) == Way::onward);
  // The way back is seen by a trial of each other way.
  write_times(choice, kManyParts, 3 * kPeriod, {100'000, 100'000, 100'000});
  CHECK(choice.best(kManyParts) == Way::again);
}

TEST_CASE("store choice: one late copy changes nothing, and what two false times have changed is mended",
          "[store_choice]") {
  constexpr MachineTimes kAllAlike{100'000, 100'000, 100'000};
  StoreChoice choice;
  write_times(choice, kOnePart, kFirstTrials, kAllAlike);
  choice.took(Way::again, 50'000'000, kBytes);
  CHECK(choice.best(kOnePart) == Way::again);
  choice.took(Way::again, 100'000, kBytes);
  choice.took(Way::past, 1, kBytes);  // a clock that stood still
  choice.took(Way::past, 0, kBytes);
  CHECK(choice.best(kOnePart) == Way::past);
  write_times(choice, kOnePart, 3 * StoreChoice::kTimed, kAllAlike);
  CHECK(choice.best(kOnePart) == Way::again);
}

TEST_CASE("store choice: small writes are in the usual way, and never timed", "[store_choice]") {
  StoreChoice choice;
  write_times(choice, kManyParts, kFirstTrials, {500'000, 100'000, 500'000});
  int calls = 0;
  const auto as = [&](Way wanted, int points) {
    return [&calls, wanted, points](Way way) {
      calls += way == wanted ? points : 100;
      return std::size_t{1};
    };
  };
  choice.run(kManyParts, StoreChoice::kLeastTimed - 1, as(Way::again, 1));
  choice.run(kManyParts, StoreChoice::kLeastTimed, as(Way::onward, 10));
  CHECK(calls == 11);
  // Less was written than was expected: that takes no time, and says nothing.
  for (int i = 0; i < 2 * kPeriod; ++i) choice.run(kManyParts, kBytes, [](Way) { return std::size_t{0}; });
  CHECK(choice.best(kManyParts) == Way::onward);
}

TEST_CASE("store choice: calls with one part and with many may come in turns", "[store_choice]") {
  constexpr MachineTimes kFarCache{300'000, 100'000, 250'000};
  StoreChoice choice;
  for (int i = 0; i < 4 * kPeriod; ++i) {
    CHECK(write_times(choice, kOnePart, 1, kFarCache)[1] == 0);
    write_times(choice, kManyParts, 1, kFarCache);
  }
  CHECK(choice.best(kOnePart) == Way::again);
  CHECK(choice.best(kManyParts) == Way::onward);
}

TEST_CASE("store choice: a trial that its calls have left does not keep others from following the machine",
          "[store_choice]") {
  StoreChoice choice;
  write_times(choice, kOnePart, kFirstTrials, {100'000, 0, 100'000});
  CHECK(choice.next(kManyParts).way == Way::onward);
  write_times(choice, kOnePart, 3 * StoreChoice::kTimed, {500'000, 0, 100'000});
  CHECK(choice.best(kOnePart) == Way::past);
  write_times(choice, kOnePart, 3 * kPeriod, {100'000, 0, 100'000});
  CHECK(choice.best(kOnePart) == Way::again);
}

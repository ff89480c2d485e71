#include "strategies/clocks.hpp"

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "support/catch.hpp"

using Workers = std::vector<std::size_t>;

TEST_CASE("clocks: with staleness 0 all wait for the last", "[examples]") {
  digits::Clocks clocks(3, 0);
  CHECK(clocks.end_step(1) == Workers{});
  CHECK(clocks.end_step(0) == Workers{});
  CHECK(clocks.end_step(2) == Workers{1, 0, 2});  // in the order in which they came
  CHECK(clocks.slowest() == 1);
  CHECK(clocks.largest_lead() == 0);
}

TEST_CASE("clocks: a quick worker goes on until it is too far ahead", "[examples]") {
  digits::Clocks clocks(2, 2);
  CHECK(clocks.end_step(0) == Workers{0});
  CHECK(clocks.end_step(0) == Workers{0});
  CHECK(clocks.end_step(0) == Workers{});  // three ahead
  CHECK(clocks.end_step(1) == Workers{0, 1});
  CHECK(clocks.steps(0) == 3);
  CHECK(clocks.slowest() == 1);
  CHECK(clocks.largest_lead() == 2);
}

TEST_CASE("clocks: one worker alone never waits", "[examples]") {
  digits::Clocks clocks(1, 0);
  for (int i = 0; i < 3; ++i) CHECK(clocks.end_step(0) == Workers{0});
  CHECK(clocks.largest_lead() == 0);
}

TEST_CASE("clocks: in any order of steps the bound holds, and somebody can always go on", "[examples]") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    std::mt19937 engine(seed);
    const std::size_t workers = 1 + engine() % 5;
    const std::uint64_t staleness = engine() % 4;
    digits::Clocks clocks(workers, staleness);
    std::set<std::size_t> running;
    for (std::size_t w = 0; w < workers; ++w) running.insert(w);
    for (int step = 0; step < 300; ++step) {
      REQUIRE_FALSE(running.empty());
      const std::size_t worker = *std::next(running.begin(), static_cast<std::ptrdiff_t>(engine() % running.size()));
      running.erase(worker);
      for (const std::size_t free : clocks.end_step(worker)) REQUIRE(running.insert(free).second);
      for (const std::size_t w : running) REQUIRE(clocks.steps(w) - clocks.slowest() <= staleness);
    }
    CHECK(clocks.largest_lead() <= staleness);
  }
}

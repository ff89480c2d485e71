// A proof by computation of the fast lane: what fast_lane.hpp says, for the real code, and for such with planted
// faults.
#include <cstdint>
#include <random>

#include "backend/shm/native/collectives.hpp"
#include "support/catch.hpp"
#include "unit/shm/fast_lane.hpp"
#include "unit/shm/fast_lane_faults.hpp"

using namespace col::test;
using RealCollectives = col::shm_backend::Collectives;

TEST_CASE("fast lane: any two calls in any ways, two ranks in all orders", "[shm]") {
  const LaneFinding finding = all_pairs<RealCollectives>(2);
  CHECK(finding.problem == "");
  CHECK(finding.runs > 20'000);
  CHECK(finding.begun > 20'000);
  CHECK(finding.ended > 5'000);
  CHECK(finding.ended < finding.begun);
}

TEST_CASE("fast lane: random calls in random ways and orders", "[shm]") {
  const std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  for (const int size : {2, 3, 5}) {
    for (const std::size_t slot : {256, 4096}) {
      const LaneFinding finding =
          random_calls<RealCollectives>(size, 2'000, seed + static_cast<std::uint64_t>(size), slot);
      CHECK(finding.problem == "");
      CHECK(finding.begun > 300);
      CHECK(finding.ended > 100);
      CHECK(finding.ended < finding.begun);
    }
  }
}

TEST_CASE("fast lane: planted faults are found", "[shm]") {
  const std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  CHECK(problem_with(0, seed) == "");
  for (int fault = 1; fault <= kLaneFaults; ++fault) {
    INFO("fault " << fault << " of mutate_fast_lane.sh");
    CHECK(problem_with(fault, seed) != "");
  }
}

#include "group/join/numbering.hpp"

#include <algorithm>
#include <numeric>

#include "support/catch.hpp"

using col::group::next_numbers;
using Ranks = std::vector<int>;

TEST_CASE("numbering: survivors keep their numbers, and newcomers fill the gaps", "[epochs]") {
  const auto numbers = next_numbers({0, 2, 3}, 1);
  CHECK(numbers.survivors == Ranks{0, 2, 3});
  CHECK(numbers.newcomers == Ranks{1});
}

TEST_CASE("numbering: more newcomers than gaps follow behind", "[epochs]") {
  CHECK(next_numbers({0, 1, 2, 3}, 2).newcomers == Ranks{4, 5});
  CHECK(next_numbers({1, 2}, 3).newcomers == Ranks{0, 3, 4});
  CHECK(next_numbers({}, 2).newcomers == Ranks{0, 1});
}

TEST_CASE("numbering: a smaller group keeps the order of its survivors, as shrink does", "[epochs]") {
  CHECK(next_numbers({0, 2, 3}, 0).survivors == Ranks{0, 1, 2});
  const auto numbers = next_numbers({0, 3, 4, 5}, 1);
  CHECK(numbers.survivors == Ranks{0, 1, 2, 3});
  CHECK(numbers.newcomers == Ranks{4});
}

TEST_CASE("numbering: a smaller group in which all numbers fit renumbers nobody", "[epochs]") {
  const auto numbers = next_numbers({0, 1, 3}, 1);  // of six ranks
  CHECK(numbers.survivors == Ranks{0, 1, 3});
  CHECK(numbers.newcomers == Ranks{2});
}

TEST_CASE("numbering: each number is there once, whoever survives of up to eight ranks", "[epochs]") {
  for (unsigned alive = 0; alive < 256; ++alive) {
    Ranks survivors;
    for (int rank = 0; rank < 8; ++rank) {
      if ((alive >> rank & 1U) != 0) survivors.push_back(rank);
    }
    for (int newcomers = 0; newcomers < 4; ++newcomers) {
      const auto numbers = next_numbers(survivors, newcomers);
      REQUIRE(std::ranges::is_sorted(numbers.survivors));
      REQUIRE(numbers.newcomers.size() == static_cast<std::size_t>(newcomers));
      Ranks all = numbers.survivors;
      all.insert(all.end(), numbers.newcomers.begin(), numbers.newcomers.end());
      std::ranges::sort(all);
      Ranks wanted(all.size());
      std::iota(wanted.begin(), wanted.end(), 0);
      REQUIRE(all == wanted);
      if (all.size() >= 8) REQUIRE(numbers.survivors == survivors);
    }
  }
}

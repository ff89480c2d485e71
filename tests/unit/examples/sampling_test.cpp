#include "sampling.hpp"

#include <algorithm>
#include <numeric>

#include "support/catch.hpp"

TEST_CASE("sampling: the shards of 1 to 17 ranks cover each image once", "[examples]") {
  for (int size = 1; size <= 17; ++size) {
    for (const std::size_t count : {0u, 1u, 5u, 16u, 17u, 30u, 127u, 128u}) {
      INFO("ranks " << size << ", images " << count);
      std::size_t next = 0;
      std::size_t shortest = count;
      std::size_t longest = 0;
      for (int rank = 0; rank < size; ++rank) {
        const auto range = digits::shard(count, rank, size);
        REQUIRE(range.begin == next);
        REQUIRE(range.end >= range.begin);
        shortest = std::min(shortest, range.end - range.begin);
        longest = std::max(longest, range.end - range.begin);
        next = range.end;
      }
      CHECK(next == count);
      CHECK(longest - shortest <= 1);
    }
  }
}

TEST_CASE("sampling: an epoch visits every image once", "[examples]") {
  for (const std::size_t count : {0u, 1u, 2u, 1438u}) {
    auto order = digits::epoch_order(1, 0, count);
    std::sort(order.begin(), order.end());
    std::vector<std::uint32_t> all(count);
    std::iota(all.begin(), all.end(), 0u);
    CHECK(order == all);
  }
}

TEST_CASE("sampling: the order depends on seed and epoch, and on nothing else", "[examples]") {
  const auto order = digits::epoch_order(1, 0, 100);
  CHECK(order == digits::epoch_order(1, 0, 100));
  CHECK(order != digits::epoch_order(1, 1, 100));
  CHECK(order != digits::epoch_order(2, 0, 100));
  CHECK(order != digits::epoch_order(std::uint64_t{1} << 32, 0, 100));
}

TEST_CASE("sampling: the order is the same on every machine", "[examples]") {
  CHECK(digits::epoch_order(1, 0, 8) == std::vector<std::uint32_t>{7, 6, 0, 5, 2, 3, 1, 4});
}

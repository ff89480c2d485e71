// Random numbers that are the same in every build: those of std::uniform_int_distribution are the library's own.
#pragma once

#include <cstdint>

namespace col::test {

class Random {
 public:
  explicit Random(std::uint64_t seed) noexcept : state_(seed) {}

  std::uint64_t next() noexcept {  // splitmix64
    std::uint64_t z = state_ += 0x9e37'79b9'7f4a'7c15;
    z = (z ^ (z >> 30)) * 0xbf58'476d'1ce4'e5b9;
    z = (z ^ (z >> 27)) * 0x94d0'49bb'1331'11eb;
    return z ^ (z >> 31);
  }
  // From 0 to `end` - 1. Requires: `end` is not 0.
  std::uint64_t below(std::uint64_t end) noexcept { return next() % end; }
  int from_to(int least, int most) noexcept {
    return least + static_cast<int>(below(static_cast<std::uint64_t>(most - least + 1)));
  }
  bool one_in(std::uint64_t times) noexcept { return below(times) == 0; }
  // Mostly short: each power of two is as likely as the next one.
  std::uint64_t skewed_below(std::uint64_t end) noexcept {
    int bits = 0;
    while (bits < 63 && (std::uint64_t{1} << (bits + 1)) <= end) ++bits;
    const std::uint64_t limit = std::uint64_t{1} << below(static_cast<std::uint64_t>(bits) + 1);
    return below(limit < end ? limit : end);
  }

 private:
  std::uint64_t state_;
};

}  // namespace col::test

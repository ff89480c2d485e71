// Random numbers that are functions of their purpose.
#pragma once

#include <cstdint>
#include <random>

namespace col::colcheck {

// A number that looks random, and is the same for the same arguments: splitmix64 of the three.
inline std::uint64_t mix(std::uint64_t seed, std::uint64_t a = 0, std::uint64_t b = 0) {
  std::uint64_t x = seed;
  for (const std::uint64_t next : {a, b}) {
    x += 0x9e3779b97f4a7c15ULL + next * 0xd1342543de82ef95ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    x ^= x >> 31;
  }
  return x;
}

// A number that is new in every run; the caller prints it.
inline std::uint64_t fresh_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

}  // namespace col::colcheck

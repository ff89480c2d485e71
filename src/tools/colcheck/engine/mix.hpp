// Random numbers that are functions of their purpose, and digests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>

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

// A hash of what must be equal: FNV-1a. Continues `hash`, so that several pieces of memory have one digest.
inline std::uint64_t digest_of(std::span<const std::byte> bytes, std::uint64_t hash = 0xcbf29ce484222325ULL) {
  for (const std::byte byte : bytes) hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3ULL;
  return hash;
}

}  // namespace col::colcheck

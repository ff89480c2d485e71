// Numbers that are the same on every rank and in every run that begins with the same seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace programs {

// The next of a row of well mixed numbers (splitmix64).
inline std::uint64_t mixed(std::uint64_t number) {
  number += 0x9e3779b97f4a7c15;
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
  number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
  return number ^ (number >> 31);
}

inline std::uint64_t mixed(std::uint64_t one, std::uint64_t other) {
  return mixed(mixed(one) + other);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  // 0 … limit - 1. Requires: limit > 0.
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(next() % limit); }
  int below(int limit) { return static_cast<int>(below(static_cast<std::size_t>(limit))); }
  bool chance(int percent) { return below(100) < percent; }
  template <class T>
  const T& pick(const std::vector<T>& list) {
    return list[below(list.size())];
  }
  template <class T>
  void shuffle(std::vector<T>& list) {
    for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[below(i)]);
  }

 private:
  std::uint64_t next() { return state_ = mixed(state_); }
  std::uint64_t state_;
};

}  // namespace programs

// Data that repeats itself after a prime number of elements: quick to make and to compare, and yet what belongs a page,
// a slice or a block further on is not the same.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace contest {

inline constexpr std::size_t kPeriod = 65521;

// The elements from `offset` on, one period of them or fewer; `value(i)` gives the element at place i.
template <class T, class Value>
std::vector<T> period_of(std::size_t offset, std::size_t count, const Value& value) {
  std::vector<T> period(std::min(count, kPeriod));
  for (std::size_t i = 0; i < period.size(); ++i) period[i] = value((offset + i) % kPeriod);
  return period;
}

template <class T, class Value>
void fill_periodic(T* to, std::size_t count, const Value& value) {
  const std::vector<T> period = period_of<T>(0, count, value);
  for (std::size_t begin = 0; begin < count; begin += kPeriod)
    std::copy_n(period.begin(), std::min(kPeriod, count - begin), to + begin);
}

// How many of `count` elements are not what they are to be.
template <class T, class Value>
std::size_t count_different(const T* got, std::size_t offset, std::size_t count, const Value& value) {
  const std::vector<T> period = period_of<T>(offset, count, value);
  std::size_t different = 0;
  for (std::size_t begin = 0; begin < count; begin += kPeriod) {
    const std::size_t length = std::min(kPeriod, count - begin);
    for (std::size_t i = 0; i < length; ++i) different += got[begin + i] != period[i] ? 1 : 0;
  }
  return different;
}

}  // namespace contest

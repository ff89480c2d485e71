#include "group/join/numbering.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace col::group {

Numbering next_numbers(const std::vector<int>& survivors, int newcomers) {
  Numbering numbers{.survivors = survivors, .newcomers = {}};
  const int size = static_cast<int>(survivors.size()) + newcomers;
  const bool all_keep_theirs = survivors.empty() || survivors.back() < size;
  if (!all_keep_theirs) std::iota(numbers.survivors.begin(), numbers.survivors.end(), 0);
  for (int number = 0; number < size; ++number) {
    if (!std::binary_search(numbers.survivors.begin(), numbers.survivors.end(), number))
      numbers.newcomers.push_back(number);
  }
  return numbers;
}

}  // namespace col::group

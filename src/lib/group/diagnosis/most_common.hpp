// Finds what most ranks say, if they say different things.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace col::group {

// The index of the first of the texts that occur most often. Requires: there is at least one text.
inline std::size_t most_common(const std::vector<std::string>& texts) {
  const auto votes = [&](const std::string& text) { return std::count(texts.begin(), texts.end(), text); };
  const auto winner =
      std::max_element(texts.begin(), texts.end(), [&](const auto& a, const auto& b) { return votes(a) < votes(b); });
  return static_cast<std::size_t>(winner - texts.begin());
}

}  // namespace col::group

#include "core/nearest_name.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <numeric>

#include <fmt/format.h>

namespace col::core {
namespace {

constexpr std::size_t kLongest = 64;

// Insertions, deletions, substitutions and swaps of neighbours that make `a` into `b` (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  using Row = std::array<std::size_t, kLongest + 1>;
  Row before{}, above{}, row{};
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0u : 1u)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = above;
    above = row;
  }
  return above[b.size()];
}

}  // namespace

std::string_view nearest_name(std::string_view misspelt, std::span<const std::string_view> candidates) {
  if (misspelt.size() > kLongest) return {};
  std::string_view nearest;
  std::size_t least = std::max<std::size_t>(1, misspelt.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(misspelt, candidate.substr(0, kLongest));
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

std::string did_you_mean(std::string_view misspelt, std::span<const std::string_view> candidates) {
  const std::string_view nearest = nearest_name(misspelt, candidates);
  return nearest.empty() ? std::string() : fmt::format("; did you mean '{}'?", nearest);
}

}  // namespace col::core

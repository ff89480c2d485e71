#include "group/select/collective_name.hpp"

#include <vector>

#include <fmt/format.h>

#include "core/joined.hpp"
#include "core/nearest_name.hpp"

namespace col::group {
namespace {

bool has_algorithms(Collective collective) {
  return collective != Collective::send && collective != Collective::recv;
}

}  // namespace

std::optional<Collective> find_collective(std::string_view name) {
  for (int i = 0; i < kCollectiveCount; ++i) {
    const auto collective = static_cast<Collective>(i);
    if (has_algorithms(collective) && to_string(collective) == name) return collective;
  }
  return std::nullopt;
}

std::string collective_hint(std::string_view misspelt) {
  std::vector<std::string_view> names;
  for (int i = 0; i < kCollectiveCount; ++i) {
    const auto collective = static_cast<Collective>(i);
    if (has_algorithms(collective)) names.push_back(to_string(collective));
  }
  const std::string hint = core::did_you_mean(misspelt, names);
  return hint.empty() ? fmt::format("; use one of {}", core::joined(names, ", ")) : hint;
}

}  // namespace col::group

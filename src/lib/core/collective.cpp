#include <col/collective.hpp>

#include <algorithm>

#include "core/names.hpp"

namespace col {
namespace {

constexpr auto kNames = [] {
  std::array<std::string_view, kCollectiveCount> names;
  std::transform(kCollectives.begin(), kCollectives.end(), names.begin(), [](const auto& row) { return row.name; });
  return names;
}();

}  // namespace

std::string_view to_string(Collective collective) noexcept {
  return core::name_at(kNames, static_cast<std::size_t>(collective));
}

Collective collective_from_string(std::string_view name) {
  return core::value_of<Collective>(kNames, name, "collective");
}

}  // namespace col

#include "colcheck/schedule.hpp"

#include <map>
#include <tuple>
#include <utility>

namespace col::colcheck {
namespace {

constexpr std::size_t kPortion = 300;

// Where a kind comes in the order of the run.
int place_of(Property::Kind kind) {
  return kind == Property::Kind::alone ? 0 : kind == Property::Kind::group ? 1 : 2;
}

}  // namespace

std::vector<Portion> schedule(std::span<const Property* const> properties, const Selection& selection) {
  using Key = std::tuple<int, std::string, int>;
  std::map<Key, Portion> worlds;
  for (const Property* property : properties) {
    std::vector<Case> cases;
    property->cases(selection, cases);
    for (Case& c : cases) {
      // Drills make their own groups.
      const bool grouped = property->kind == Property::Kind::group;
      const Key key(place_of(property->kind), grouped ? c.backend : std::string(), grouped ? c.ranks : 0);
      Portion& portion = worlds.try_emplace(key, Portion{property->kind, {}}).first->second;
      portion.cases.push_back(std::move(c));
    }
  }
  std::vector<Portion> portions;
  for (auto& [key, portion] : worlds) {
    for (std::size_t begin = 0; begin < portion.cases.size(); begin += kPortion) {
      const auto first = portion.cases.begin() + static_cast<std::ptrdiff_t>(begin);
      const auto count = std::min(kPortion, portion.cases.size() - begin);
      portions.push_back({portion.kind, {first, first + static_cast<std::ptrdiff_t>(count)}});
    }
  }
  return portions;
}

}  // namespace col::colcheck

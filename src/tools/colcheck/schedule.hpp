// Which cases run, and in which portions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "colcheck/property.hpp"

namespace col::colcheck {

// Cases that one order carries: of one kind, backend and number of ranks.
struct Portion {
  Property::Kind kind;
  std::vector<Case> cases;
};

// The properties' cases, each once, in portions: few groups have to be made, and reports come often enough for someone
// who watches. Cases without a group come first, drills last.
std::vector<Portion> schedule(std::span<const Property* const> properties, const Selection& selection);

}  // namespace col::colcheck

// Which cases run, and in which portions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "colcheck/property.hpp"

namespace col::colcheck {

// Cases for one order: all of one kind, backend, number of ranks, and kind of devices.
struct Portion {
  Property::Kind kind;
  std::vector<Case> cases;
};

// The properties' cases, each once, in portions. Few groups have to be made, and reports come often enough for somebody
// who watches. Cases without a group come first, drills last.
//
// A selection about GPUs has only cases of properties that matter there (Property::on_gpus). They take its devices in
// turn; in a full run, each case comes with all of them.
std::vector<Portion> schedule(std::span<const Property* const> properties, const Selection& selection);

}  // namespace col::colcheck

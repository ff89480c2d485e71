// Which cases run, and in which portions; and the way from a case that fails to the smallest one that still does.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "colcheck/engine/property.hpp"
#include "colcheck/report/results.hpp"

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

// Simpler cases, one step away, the boldest first. All are possible ones: a root is one of the ranks.
std::vector<Case> simpler(const Case& c);

// Goes from case to simpler case as long as `fails` says that one fails too. Asks at most `most_tries` times.
std::optional<CaseResult> shrink(const Case& c, int most_tries,
                                 const std::function<std::optional<CaseResult>(const Case&)>& fails);

}  // namespace col::colcheck

// All properties.
#pragma once

#include <span>
#include <string_view>

#include "colcheck/engine/property.hpp"

namespace col::colcheck {

// In the order of the reports.
std::span<const Property* const> properties();
// Null if there is none of that name.
const Property* find_property(std::string_view name);

// One whose cases are run in groups.
inline Property in_group(std::string_view name, std::string_view summary, void (*add)(Draw&),
                         Finding (*run)(Rank&, const Case&), OnGpus on_gpus = OnGpus::nothing, int fewest_ranks = 1,
                         bool draws_primitives = false) {
  return {name, summary, Property::Kind::group, add, run, on_gpus, fewest_ranks, draws_primitives};
}

extern const Property kExact;
extern const Property kRoots;
extern const Property kCounts;
extern const Property kInPlace;
extern const Property kUntouched;
extern const Property kGuardPages;
extern const Property kUnaligned;
extern const Property kRefill;
extern const Property kVForms;
extern const Property kHuge;
extern const Property kRounding;
extern const Property kSameBits;
extern const Property kRepeatable;
extern const Property kRankOrder;
extern const Property kAnyRanks;
extern const Property kSpecialValues;
extern const Property kWrap;
extern const Property kHalfSums;
extern const Property kPrograms;
extern const Property kAsync;
extern const Property kPrepared;
extern const Property kMessages;
extern const Property kOverlappingGroups;
extern const Property kThreads;
extern const Property kOneGroupTwoThreads;
extern const Property kBarrier;
extern const Property kManyRanks;
extern const Property kSignals;
extern const Property kSlowRank;
extern const Property kStickyError;
extern const Property kChurn;
extern const Property kCounterWrap;
extern const Property kAliasing;
extern const Property kWrongArguments;
extern const Property kPlans;
extern const Property kSimulator;

}  // namespace col::colcheck

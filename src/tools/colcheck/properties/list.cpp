#include "colcheck/properties/list.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "colcheck/faults/drill.hpp"

namespace col::colcheck {
namespace {

// In the order of reports.
constexpr std::array kProperties = {&kExact,
                                    &kRoots,
                                    &kCounts,
                                    &kInPlace,
                                    &kUntouched,
                                    &kGuardPages,
                                    &kUnaligned,
                                    &kRefill,
                                    &kVForms,
                                    &kHuge,
                                    &kRounding,
                                    &kSameBits,
                                    &kRepeatable,
                                    &kRankOrder,
                                    &kAnyRanks,
                                    &kSpecialValues,
                                    &kWrap,
                                    &kHalfSums,
                                    &kPrograms,
                                    &kAsync,
                                    &kPrepared,
                                    &kMessages,
                                    &kOverlappingGroups,
                                    &kThreads,
                                    &kOneGroupTwoThreads,
                                    &kBarrier,
                                    &kManyRanks,
                                    &kSignals,
                                    &kSlowRank,
                                    &kStickyError,
                                    &kChurn,
                                    &kCounterWrap,
                                    &kAliasing,
                                    &kWrongArguments,
                                    &kPlans,
                                    &kSimulator};

}  // namespace

std::span<const Property* const> properties() {
  static const std::vector<const Property*> all = [] {
    std::vector<const Property*> listed(kProperties.begin(), kProperties.end());
    for (const Property& drill : drill_properties()) listed.push_back(&drill);
    return listed;
  }();
  return all;
}

const Property* find_property(std::string_view name) {
  const auto found = std::ranges::find(properties(), name, &Property::name);
  return found == properties().end() ? nullptr : *found;
}

}  // namespace col::colcheck

#include "colcheck/properties/list.hpp"

#include <algorithm>
#include <array>

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
                                    &kSimulator,
                                    &kFaultMismatchOp,
                                    &kFaultMismatchCount,
                                    &kFaultMismatchDType,
                                    &kFaultMismatchRoot,
                                    &kFaultMismatchReduceOp,
                                    &kFaultMismatchInFlight,
                                    &kFaultAbsent,
                                    &kFaultKilled,
                                    &kFaultKilledJoining,
                                    &kFaultExitsEarly,
                                    &kFaultSurvivors,
                                    &kFaultStopped,
                                    &kFaultHung,
                                    &kFaultExplained,
                                    &kFaultLate,
                                    &kFaultLateCopy,
                                    &kFaultShmFull,
                                    &kFaultDescriptorLimit,
                                    &kFaultTakenPort,
                                    &kFaultNoStore};

}  // namespace

std::span<const Property* const> properties() {
  return kProperties;
}

const Property* find_property(std::string_view name) {
  const auto found =
      std::find_if(kProperties.begin(), kProperties.end(), [&](const Property* p) { return p->name == name; });
  return found == kProperties.end() ? nullptr : *found;
}

}  // namespace col::colcheck

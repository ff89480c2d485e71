// The self-test on the lead's side: runs the properties that must catch each planted bug.
#pragma once

#include <cstdint>

#include <col/group.hpp>

#include "colcheck/lead.hpp"

namespace col::colcheck {

// Prints which property catches which bug. Returns the exit code: 0 if each bug is caught and the control is not.
// Requires: register_planted_backends() on all ranks, and at least kSelfTestRanks of them; otherwise UsageError.
int run_self_test(Lead& lead, const ContextSpec& spec, std::uint64_t seed);

}  // namespace col::colcheck

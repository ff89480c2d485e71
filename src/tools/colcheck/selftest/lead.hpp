// The self-test on the lead's side: runs what each planted bug is to be caught by.
#pragma once

#include <cstdint>

#include <col/group.hpp>

#include "colcheck/lead.hpp"

namespace col::colcheck {

// Prints which property catches which bug, and returns the exit code: 0 when each is caught and the control is not.
// Requires: register_planted_backends() on all ranks, and at least kSelfTestRanks of them, else UsageError.
int run_self_test(Lead& lead, const ContextSpec& spec, std::uint64_t seed);

}  // namespace col::colcheck

// Options that are each right and do not go together.
#pragma once

#include "colrun/surroundings.hpp"
#include "colrun/values.hpp"
#include "launch/job_spec.hpp"

namespace col::colrun {

// `spec` as it was read from `values`. Throws UsageError for the first conflict, which says what to write instead.
void check_conflicts(const Values& values, const Surroundings& surroundings, const launch::JobSpec& spec);

}  // namespace col::colrun

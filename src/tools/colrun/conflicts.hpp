// Options that are right by themselves, but cannot be used together.
#pragma once

#include "colrun/surroundings.hpp"
#include "colrun/values.hpp"
#include "launch/job/job_spec.hpp"

namespace col::colrun {

// `spec` is what was read from `values`. For the first conflict, throws UsageError that says what to write instead.
void check_conflicts(const Values& values, const Surroundings& surroundings, const launch::JobSpec& spec);

}  // namespace col::colrun

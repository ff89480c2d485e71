// Turns option values into the description of a job: one function for each group of options. All of them throw
// UsageError for an invalid value. conflicts.hpp checks whether options can be used together.
#pragma once

#include <string>

#include "colrun/surroundings.hpp"
#include "colrun/values.hpp"
#include "launch/job/job_spec.hpp"

namespace col::colrun {

// How many ranks of one program -n stands for.
int ranks_of(const Given& given, const Surroundings& surroundings);
// "NAME=value" for -x NAME or -x NAME=value.
std::string rank_variable(const Given& given, const Surroundings& surroundings);

void read_nodes(const Values& values, launch::NodesSpec& nodes);
void read_binding(const Values& values, launch::BindingSpec& binding);
void read_output(const Values& values, launch::JobSpec& spec);
void read_lifecycle(const Values& values, launch::LifecycleSpec& lifecycle);
void read_environment(const Values& values, const Surroundings& surroundings, launch::EnvironmentSpec& environment);
void read_inspection(const Values& values, launch::JobSpec& spec);

}  // namespace col::colrun

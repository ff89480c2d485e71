// The rows of each group of options, and what rows cannot read one by one. All of it throws UsageError for an invalid
// value. conflicts.hpp checks whether options can be used together.
#pragma once

#include <string>
#include <vector>

#include "colrun/surroundings.hpp"
#include "colrun/values.hpp"
#include "launch/job/job_spec.hpp"

namespace col::colrun {

// How many ranks of one program -n stands for.
int ranks_of(const Given& given, const Surroundings& surroundings);
// "NAME=value" for -x NAME or -x NAME=value.
std::string rank_variable(const Given& given, const Surroundings& surroundings);

// --master-addr and --master-port.
void read_meeting_place(const Values& values, launch::NodesSpec& nodes);
// All but what their rows read.
void read_environment(const Values& values, const Surroundings& surroundings, launch::EnvironmentSpec& environment);
// Who types into a debugger means the rank in it.
void read_debugger_input(const Values& values, launch::JobSpec& spec);

std::vector<OptionRow> node_rows();
std::vector<OptionRow> binding_rows();
std::vector<OptionRow> output_rows();
std::vector<OptionRow> lifecycle_rows();
std::vector<OptionRow> environment_rows();
std::vector<OptionRow> inspection_rows();
std::vector<OptionRow> drill_rows();

}  // namespace col::colrun

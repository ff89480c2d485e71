// All options of colrun: the parser, --help, the variables COLRUN_*, configuration files and the test of the manual
// page all read these rows.
#pragma once

#include <string>

#include "colrun/settings.hpp"
#include "common/command_line.hpp"
#include "launch/job/job_spec.hpp"

namespace col::colrun {

// In the order in which --help shows them. Their values go into `job`, which must have a first program; `set` throws
// UsageError. What rows cannot read one by one, the functions below read. Both arguments must outlive the rows.
Rows option_rows(launch::JobSpec& job, const Surroundings& surroundings);

// How many ranks of one program -n stands for. Throws UsageError.
int ranks_of(const std::string& option, const std::string& text, const Surroundings& surroundings);
// "NAME=value" for -x NAME or -x NAME=value. Throws UsageError.
std::string rank_variable(const Given& given, const Surroundings& surroundings);

// --master-addr and --master-port; empty if the job's only node needs neither. Throws UsageError.
std::string read_master(const Values& values);
// -u, -x and --env-file. Throws UsageError.
void read_environment(const Values& values, const Surroundings& surroundings, launch::EnvironmentSpec& environment);

}  // namespace col::colrun

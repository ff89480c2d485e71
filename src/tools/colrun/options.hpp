// Reads the command line of colrun, the variables COLRUN_* and a configuration file, and describes the job.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "colrun/settings.hpp"
#include "launch/job/job_spec.hpp"

namespace col::colrun {

struct Job {
  launch::JobSpec spec;
  std::vector<std::string> warnings;  // for the user, a line each
};
struct Text {  // text to print: --help, --help-all, --version
  std::string text;
};
struct Agent {};  // --agent: another colrun has started this one on its host

using Request = std::variant<Job, Text, Agent>;

// `arguments` does not contain argv[0]. Reads the files that options name, each with a deadline. Throws UsageError.
Request parse_options(const std::vector<std::string>& arguments, const Surroundings& surroundings);

}  // namespace col::colrun

// The command line of colrun, the variables COLRUN_* and a configuration file: what the job is.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "colrun/surroundings.hpp"
#include "common/command_line.hpp"
#include "launch/job_spec.hpp"

namespace col::colrun {

// The command line cannot be used; what() is one line: what is wrong and what to write instead.
using tools::UsageError;

struct Job {
  launch::JobSpec spec;
  std::vector<std::string> warnings;  // for the user, a line each
};
struct Text {  // to be printed: --help, --help-all, --version
  std::string text;
};
struct Agent {};  // another colrun has started this one on its host: --agent

using Request = std::variant<Job, Text, Agent>;

// `arguments` without argv[0]. Reads the files that options name, each under a deadline. Throws UsageError.
Request parse_options(const std::vector<std::string>& arguments, const Surroundings& surroundings);

}  // namespace col::colrun

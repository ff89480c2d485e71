// What the user reads when a job did not end well: one line per fact.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/error_file.hpp"
#include "launch/job_spec.hpp"

namespace col::launch {

// "exited with code 7", "was killed by SIGSEGV".
std::string describe_wait_status(int wait_status);

// "rank 2", "ranks 0-2, 5".
std::string name_ranks(const std::vector<int>& ranks);

// The lines about a job that is over, four at most, without newlines; none when all is well. `culprit_error` is what
// the culprit said in its error file.
std::vector<std::string> report_lines(const JobResult& result, std::string_view tool,
                                      const std::optional<RankError>& culprit_error);

}  // namespace col::launch

// The hosts on which a job is started.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "colrun/values.hpp"
#include "launch/job/job_spec.hpp"

namespace col::colrun {

// "a:4,ada@b". Throws UsageError.
std::vector<launch::HostSpec> parse_host_list(const Given& given);

// One host on each line: "h", "h:4", "h slots=4", "user@h". A # begins a comment anywhere. `path` is for messages.
// Throws UsageError that names the line.
std::vector<launch::HostSpec> parse_hostfile(std::string_view text, const std::string& path);

}  // namespace col::colrun

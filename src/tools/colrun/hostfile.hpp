// Which hosts a job is started on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "colrun/values.hpp"
#include "launch/job_spec.hpp"

namespace col::colrun {

// "a:4,ada@b". Throws UsageError.
std::vector<launch::HostSpec> parse_host_list(const Given& given);

// One host a line: "h", "h:4", "h slots=4", "user@h"; # begins a comment anywhere. `path` is for messages. Throws
// UsageError, which names the line.
std::vector<launch::HostSpec> parse_hostfile(std::string_view text, const std::string& path);

}  // namespace col::colrun

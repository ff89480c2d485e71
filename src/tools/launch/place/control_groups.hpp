// The control groups that this process is in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace col::launch {

// The directories of the groups that may limit a controller ("cpu", "pids") for this process, as far as they are
// visible here: first its own group, then its ancestors. It covers both versions, because a machine may use both at
// once. `proc` is the path of procfs.
std::vector<std::string> control_groups(std::string_view controller, const std::string& proc = "/proc");

}  // namespace col::launch

// The processors that the system allows this process.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace col::launch {

// The control groups that this process is in.
//
// The directories of the groups that may limit a controller ("cpu", "pids") for this process, as far as they are
// visible here: first its own group, then its ancestors. It covers both versions, because a machine may use both at
// once. `proc` is the path of procfs.
std::vector<std::string> control_groups(std::string_view controller, const std::string& proc = "/proc");

// The processors that this process may run on, by its affinity mask: ascending, with the numbers of the operating
// system. All processors of the machine if this cannot be known.
std::vector<int> allowed_cpus();

// The processors that this process's control group offers (cpuset), or else all that are on line: ascending. Where the
// mask of allowed_cpus() has fewer, somebody has bound this process. Empty if this cannot be known. `proc` and `sys`
// are the paths of procfs and sysfs.
std::vector<int> offered_cpus(const std::string& proc = "/proc", const std::string& sys = "/sys");

// How many processors' time the control groups of this process allow, its own one and those above it: 1.5 for a quota
// of 150 ms in every 100 ms. Nothing if there is no limit, or no visible one. `proc` is the path of procfs.
std::optional<double> cpu_quota(const std::string& proc = "/proc");

// `cpus` processors under that quota, which is rounded up; at least 1.
int usable_cpus(int cpus, std::optional<double> quota) noexcept;

// The same for this process.
int usable_cpus();

}  // namespace col::launch

// How many processors this process may use.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace col::launch {

// The processors that this process may run on, by its affinity mask: ascending, with the numbers of the operating
// system. All processors of the machine if this cannot be known.
std::vector<int> allowed_cpus();

// How many processors' time the control groups of this process allow, its own one and those above it: 1.5 for a quota
// of 150 ms in every 100 ms. Nothing if there is no limit, or no visible one. `proc` is the path of procfs.
std::optional<double> cpu_quota(const std::string& proc = "/proc");

// `cpus` processors under that quota, which is rounded up; at least 1.
int usable_cpus(int cpus, std::optional<double> quota) noexcept;

// The same for this process.
int usable_cpus();

}  // namespace col::launch

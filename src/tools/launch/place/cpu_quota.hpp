// How many processors this process may use.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace col::launch {

// The processors that this process may run on, by its affinity mask: ascending, as the operating system numbers them.
// Those of the machine when there is no way to know.
std::vector<int> allowed_cpus();

// How many processors' time the control groups of this process grant it, its own one and those above it: "1.5" for
// quota 150 ms of every 100 ms. Nothing when there is no limit, or none that can be seen. `proc` is where procfs is.
std::optional<double> cpu_quota(const std::string& proc = "/proc");

// `cpus` processors under that quota, which is rounded up; at least 1.
int usable_cpus(int cpus, std::optional<double> quota) noexcept;

// The same of this process.
int usable_cpus();

}  // namespace col::launch

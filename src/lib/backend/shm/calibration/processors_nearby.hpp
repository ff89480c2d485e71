// The processors on which a second thread works as another rank would, and the caches of processors.
#pragma once

#include <sched.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace col::shm_backend {

// The processors in a list of the kernel's, as "0-3,8".
cpu_set_t processors_in(std::string_view list) noexcept;

// Of those that the control group of this thread allows, the ones beside `own`: in another core, with the same
// last-level cache, as far as there are such. Widens the affinity of the calling thread meanwhile, and leaves it so.
// Empty if there is none. `topology`: where the kernel shows processors; tests use other values.
cpu_set_t processors_beside(int own, const std::string& topology = "/sys/devices/system/cpu");

// Of the last level, a processor has no more than so many second-level caches for itself. A virtual machine is shown
// the whole cache of a processor of which it has a few cores: 480 MiB for two, in one case, of which others use the
// most.
inline constexpr std::size_t kMostSecondLevels = 16;

// The last-level caches of so many processors that are like `one`, in bytes: of as many as they need. 0: the kernel
// does not say.
std::size_t last_caches_of(int processors, int one, const std::string& topology = "/sys/devices/system/cpu");

}  // namespace col::shm_backend

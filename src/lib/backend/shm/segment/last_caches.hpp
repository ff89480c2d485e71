// The last-level caches of processors, as the kernel shows them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace col::shm_backend {

// How many processors are in a list of the kernel's, as "0-3,8". 0: it is no such list.
std::size_t processors_in(std::string_view list) noexcept;

// A processor has no more than so many second-level caches of the last level for itself. A virtual machine is shown
// the whole cache of a processor of which it has a few cores: 480 MiB for two, in one case, of which others use the
// most.
inline constexpr std::size_t kMostSecondLevels = 16;

// The last-level caches of so many processors that are like `one`, in bytes: of as many as they need. 0: the kernel
// does not say. `topology`: where the kernel shows processors; tests use other values.
std::size_t last_caches_of(int processors, int one, const std::string& topology = "/sys/devices/system/cpu");

}  // namespace col::shm_backend

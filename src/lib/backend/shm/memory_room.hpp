// How much memory there is to take.
//
// Shared memory is taken whole when it is made. Beyond the room of the machine or of a control group the kernel gives
// no error for that: it kills a process. So whoever takes much asks first. The answer holds for the moment; others take
// memory too.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "core/control_group.hpp"

namespace col::shm_backend {

// Where the kernel tells. Other values than these are for tests.
struct MemoryPlaces {
  std::string machine = "/proc/meminfo";
  core::ControlGroupPlaces groups = {};
};

struct MemoryRoom {
  std::size_t bytes = 0;
  std::string where;  // "on this machine", or "in the memory limit of the control group /sys/fs/cgroup/x"
};

// How much this process may still take before the kernel kills something, what the kernel can free for it included;
// nothing when it cannot be known.
std::optional<MemoryRoom> memory_room(const MemoryPlaces& places = {});

// Why `bytes` cannot be taken, as "1024 KiB are left on this machine"; nothing when they can, or when nobody knows.
std::optional<std::string> lack_of_memory(std::size_t bytes, const MemoryPlaces& places = {});

}  // namespace col::shm_backend

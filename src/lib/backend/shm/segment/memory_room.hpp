// How much memory is free.
//
// Shared memory is taken from the machine when it is made. If it exceeds what the machine or a control group has, the
// kernel gives no error, but kills a process. So code that takes much memory asks first. The answer holds only for the
// moment, because others take memory too.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "core/control_group.hpp"

namespace col::shm_backend {

// Where the kernel shows this. Tests use other values.
struct MemoryPlaces {
  std::string machine = "/proc/meminfo";
  core::ControlGroupPlaces groups = {};
};

struct MemoryRoom {
  std::size_t bytes = 0;
  std::string where;  // "on this machine", or "in the memory limit of the control group /sys/fs/cgroup/x"
};

// How much memory this process may still take before the kernel kills something. It includes what the kernel can free
// for it. Nothing if it cannot be known.
std::optional<MemoryRoom> memory_room(const MemoryPlaces& places = {});

// Why `bytes` cannot be taken, as "1024 KiB are left on this machine". Nothing if they can be taken, or if it cannot be
// known.
std::optional<std::string> lack_of_memory(std::size_t bytes, const MemoryPlaces& places = {});

}  // namespace col::shm_backend

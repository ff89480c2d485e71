// Things of which a process has one. In a simulated job, where the ranks are threads, there is one for each rank.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/clock/scheduler.hpp"

namespace col::core {

extern ProcessState state_of_process;

inline ProcessState& process_state() noexcept {
  if (Scheduler* const simulated = scheduler()) return simulated->process();
  return state_of_process;
}

inline std::int64_t own_pid() noexcept {
  if (Scheduler* const simulated = scheduler()) return simulated->pid();
  return ::getpid();
}

// Where the kernel has what it tells of a process: "/proc/<pid>".
std::string process_directory(std::int64_t pid);

// Fills `bytes`; returns false if the system has no random bytes.
bool random_bytes(std::span<std::byte> bytes) noexcept;

}  // namespace col::core

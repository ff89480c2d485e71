#include "core/clock/this_process.hpp"

#include <sys/random.h>

#include <fmt/format.h>

namespace col::core {

constinit ProcessState state_of_process;

std::string process_directory(std::int64_t pid) {
  Scheduler* const simulated = scheduler();
  if (simulated == nullptr) return fmt::format("/proc/{}", pid);
  // Its ranks are threads of this process. Of one that has ended there is nothing left.
  return simulated->condition_of(pid) == ProcessCondition::gone ? "/proc/0" : "/proc/self";
}

bool random_bytes(std::span<std::byte> bytes) noexcept {
  if (Scheduler* const simulated = scheduler()) {
    simulated->random(bytes);
    return true;
  }
  return ::getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
}

}  // namespace col::core

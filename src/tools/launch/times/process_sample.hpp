// What the kernel says of a process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace col::launch {

struct ProcessSample {
  double cpu_seconds = 0;  // of all its threads
  std::uint64_t rss_bytes = 0;
  // Of its main thread; 0 where the kernel does not count it.
  double on_cpu_seconds = 0;
  double queued_seconds = 0;  // ready to run, with no processor
};

// Nothing if there is no such process, or no /proc. `proc` is the path of procfs.
std::optional<ProcessSample> sample_process(pid_t pid, const std::string& proc = "/proc");

}  // namespace col::launch

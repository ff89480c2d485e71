// Finds and ends processes without a handle on them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/clock/clock.hpp"

namespace col::launch {

struct ProcessInfo {
  pid_t pid = 0;
  pid_t parent = 0;
  std::uint64_t start_ticks = 0;  // since boot; identifies a reused pid
};

// The information in /proc about one process; pid 0 if it is gone.
ProcessInfo read_process(pid_t pid);

struct ProcessSample {
  double cpu_seconds = 0;  // of all its threads
  std::uint64_t rss_bytes = 0;
  // The main thread's; 0 where the kernel does not count it.
  double on_cpu_seconds = 0;
  double queued_seconds = 0;  // ready to run, with no processor
};

// Nothing if there is no such process, or no /proc. `proc` is the path of procfs.
std::optional<ProcessSample> sample_process(pid_t pid, const std::string& proc = "/proc");

// The direct children of `parent`, living or not reaped yet. It reads all of /proc, so it is not for the normal path of
// a job.
std::vector<ProcessInfo> children_of(pid_t parent);

// The processes below `ancestor`: its children, their children and so on. It reads all of /proc once.
std::vector<pid_t> descendants_of(pid_t ancestor);

// True if this process has no child at all. One system call.
bool has_no_children() noexcept;

// Kills and reaps the children of this process that started at or after `since_ticks`, with all their descendants.
// Returns how many were left at the deadline. This is nearly always 0: only a process that is stuck in the kernel
// survives. Processes in `kept` stay. `meanwhile` is called every few milliseconds.
//
// Only direct children are ever signalled, and a child keeps its pid until we reap it, so no other process can be hit.
// When their parents die, descendants become our children. Requires: this process is a child subreaper.
std::size_t kill_children(std::uint64_t since_ticks, core::Clock::time_point deadline, std::span<const pid_t> kept = {},
                          const std::function<void()>& meanwhile = {});

}  // namespace col::launch

// Finding and ending processes that nobody holds a handle of.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

namespace col::launch {

struct ProcessInfo {
  pid_t pid = 0;
  pid_t parent = 0;
  std::uint64_t start_ticks = 0;  // since boot; tells a reused pid apart
};

// What /proc says about one process; pid 0 when it is gone.
ProcessInfo read_process(pid_t pid);

// The direct children of `parent`, living or not yet reaped. Reads all of /proc: not for the path of a job that is
// well.
std::vector<ProcessInfo> children_of(pid_t parent);

// True when this process has no child at all. One system call.
bool has_no_children() noexcept;

// Kills and reaps the children of this process that started at or after `since_ticks`, with all their descendants, and
// returns how many were left at the deadline (0 nearly always: only a process stuck in the kernel survives). Those in
// `kept` stay.
//
// Only direct children are ever signalled, and a child keeps its pid until we reap it, so no stranger can be hit. Their
// descendants become our children as their parents die. Requires: this process is a child subreaper.
std::size_t kill_children(std::uint64_t since_ticks, std::chrono::steady_clock::time_point deadline,
                          std::span<const pid_t> kept = {});

}  // namespace col::launch

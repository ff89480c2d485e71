// Stacks of processes as lines of a report: from the output of debuggers, and from /proc.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace col::launch {

// The threads and frames in the output of `gdb` or `eu-stack`, without other text, and without addresses for frames
// with a name. At most `most_lines`. Empty if there is no frame in it.
std::vector<std::string> trim_stack(std::string_view output, std::size_t most_lines);

// The lines as one text, without what differs between processes that do the same: addresses and thread numbers.
std::string stack_key(const std::vector<std::string>& lines);

// What the kernel says about a process, without a debugger: one line for each thread: its state, its system call, and
// where it waits in the kernel. For a thread that no signal can reach, the kernel's own stack follows, if it may be
// read. At most `most_lines`. Empty if the process has ended.
//
// May block while the process is in execve, so call it in a separate process.
std::vector<std::string> proc_stack(pid_t pid, std::size_t most_lines);

}  // namespace col::launch

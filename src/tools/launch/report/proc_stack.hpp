// What the kernel says about a process, without a debugger.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

namespace col::launch {

// One line for each thread: its state, its system call, and where it waits in the kernel. For a thread that no signal
// can reach, the kernel's own stack follows, if it may be read. At most `most_lines`. Empty if the process has ended.
//
// May block while the process is in execve, so call it in a separate process.
std::vector<std::string> proc_stack(pid_t pid, std::size_t most_lines);

}  // namespace col::launch

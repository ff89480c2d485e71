// What the kernel says about a process without a debugger.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

namespace col::launch {

// One line for each thread: what it does, the system call that it is in, where it waits in the kernel; below it, for a
// thread that no signal can reach, the kernel's own stack where it may be read. At most `most_lines`; empty when the
// process has ended or is no more.
//
// May block as long as the process is within execve: call it in a process of its own.
std::vector<std::string> proc_stack(pid_t pid, std::size_t most_lines);

}  // namespace col::launch

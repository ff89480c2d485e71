// `colrun --agent`: the launcher of one node, which another launcher has started by ssh (remotes.hpp).
#pragma once

#include <span>

namespace col::launch {

// Reads its job from stdin, runs it, and returns the exit code. If stdin ends before the job does, the ranks are killed
// at once: the process that started this launcher is gone.
int run_agent(std::span<char> title);

}  // namespace col::launch

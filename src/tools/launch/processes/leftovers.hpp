// What ranks that were killed may have left on this machine.
#pragma once

#include <string>
#include <vector>

namespace col::launch {

// Removes files of col's shared memory in `directory` that are this user's and that no process has open or mapped, and
// returns their paths. Ranks keep such a file by name only for the moment in which others open it, and only where the
// kernel has no memory files; so there is hardly ever one. Looks at all of /proc when there is: for restarts.
std::vector<std::string> remove_leftover_shared_memory(const std::string& directory = "/dev/shm");

// Where this process is; empty when that directory is gone.
std::string current_directory();

}  // namespace col::launch

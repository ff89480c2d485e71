// What killed ranks may have left on this machine.
#pragma once

#include <string>
#include <vector>

namespace col::launch {

// Removes files of col's shared memory in `directory` that belong to this user and that no process has open or mapped.
// Returns their paths. Ranks keep such a file by name only for the moment in which others open it, and only if the
// kernel has no memory files; so there is almost never one. If there is one, it reads all of /proc. For restarts.
std::vector<std::string> remove_leftover_shared_memory(const std::string& directory = "/dev/shm");

// The current directory; empty if it does not exist any more.
std::string current_directory();

}  // namespace col::launch

// What a job has left on the machine.
#pragma once

#include <chrono>
#include <string>

namespace col::colcheck {

struct Traces {
  std::string job_id;             // the id that its processes have in their environment
  std::string job_directory;      // its place, which must not exist any more
  std::string scratch_directory;  // TMPDIR of its processes: must be empty
  std::string shm_directory;      // "/dev/shm", or the place where the job's own one is visible
  std::chrono::system_clock::time_point started = {};
};

// Finds the first of these, in words: a process that carries the job's id; a file of the library in /dev/shm that was
// made since; a file in the scratch directory, or one that has the job's id in its name beside the job's directory.
// Empty if there is nothing. What is just being removed gets a second to go.
std::string leftover(const Traces& traces);

}  // namespace col::colcheck

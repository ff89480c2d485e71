// What a job has left on the machine.
#pragma once

#include <chrono>
#include <string>

namespace col::colcheck {

struct Traces {
  std::string job_id;             // that its processes have in their environment
  std::string job_directory;      // which may be there, in its parent
  std::string scratch_directory;  // TMPDIR of its processes: must be empty
  std::string shm_directory;      // "/dev/shm", or where the job's own is seen
  std::chrono::system_clock::time_point started = {};
};

// A process that carries the job's id; a file of the library in /dev/shm that was made since; a file in the scratch
// directory, or one that has the job's id in its name beside the job's directory. The first that is found, in words;
// empty when there is nothing. What is just going is given a second for it.
std::string leftover(const Traces& traces);

}  // namespace col::colcheck

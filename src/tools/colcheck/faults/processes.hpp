// What drills do on this machine: they start processes so that they can be harmed, give them a private /dev/shm, and
// look for what they have left behind.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <col/types.hpp>

#include "common/unique_fd.hpp"

namespace col::colcheck {

// How a process ended.
struct Ending {
  int exit_code = -1;  // -1: by a signal
  int signal = 0;
};

// One child process, which the destructor kills and reaps. Only the descriptors 0 to 2 are open in it, it writes no
// core, and it is killed when the thread that made it ends.
class Process {
 public:
  // `environment` is all of it. Throws std::system_error if there can be no more processes or descriptors. If the
  // program cannot be executed, the process has ended with 127, and why_not_executed() says why.
  Process(std::vector<std::string> command, std::vector<std::string> environment, int stdin_fd, int output_fd);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  const std::string& why_not_executed() const { return why_not_executed_; }
  // Readable once the process has ended; -1 if the system refuses one. Then look again after this time.
  int pidfd() const { return pidfd_.get(); }
  Duration longest_nap() const { return pidfd_ ? std::chrono::seconds(1) : Duration(std::chrono::milliseconds(5)); }
  bool running() const { return !ending_; }
  // Nothing while it runs. Does not block. Reaps it.
  const std::optional<Ending>& try_end();
  // Whether it is stopped (SIGSTOP). Does not block.
  bool stopped() const;
  void signal(int number) const;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  tools::UniqueFd pidfd_;
  std::optional<Ending> ending_ = {};
  std::string why_not_executed_ = {};
};

// A mount namespace in which /dev/shm is a tmpfs of that size. A process that does nothing else, the holder, keeps it
// alive. Root just makes one. Other users need a user namespace for it, in which they are root.
class PrivateShm {
 public:
  // Throws std::runtime_error or LaunchError if this system does not allow it, or has no unshare and nsenter.
  explicit PrivateShm(std::size_t bytes);

  // Before a command: what runs it in there.
  std::vector<std::string> entering() const;
  // Where its files are visible from outside.
  std::string path() const;

 private:
  std::optional<Process> holder_;
};

// From here on, `action` (SECCOMP_RET_…) is what becomes of this system call in this thread and those that it makes.
// `flags` as of seccomp(). Returns what that does: negative if the system refuses.
int filter_calls(unsigned number, unsigned action, unsigned flags = 0);

struct Traces {
  std::string job_id;             // the id that its processes have in their environment
  std::string job_directory;      // its place, which must not exist any more
  std::string scratch_directory;  // TMPDIR of its processes: must be empty
  std::string shm_directory;      // "/dev/shm", or the place where the job's own one is visible
  std::chrono::system_clock::time_point started = {};
};

// Finds the first of these, in words: a process that carries the job's id; a file of the library in /dev/shm that was
// made since and that no process has open; a file in the scratch directory, or one that has the job's id in its name
// beside the job's directory. Empty if there is nothing. What is just being removed gets a second to go.
std::string leftover(const Traces& traces);

}  // namespace col::colcheck

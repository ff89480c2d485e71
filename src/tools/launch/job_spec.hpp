// What a job is, and how it ended.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

namespace col::launch {

inline constexpr int kMaxRanks = 4096;

struct JobSpec {
  std::vector<std::string> command;  // the program and its arguments; not empty
  int ranks = 1;                     // 1 … kMaxRanks
  bool label = false;                // put "[rank] " before every line
  std::string tool = "colrun";       // who speaks in messages: "colrun: …"

  // Rank 0 reads from here; -1 gives it /dev/null, as every other rank. run() gives the descriptor away: in the caller
  // it is /dev/null afterwards, so that a writer at its other end notices when rank 0 is gone.
  int stdin_fd = 0;
  int stdout_fd = 1;
  int stderr_fd = 2;
  // Descriptors of 3 and above that ranks inherit (a shell's `<(…)`), sorted. All others are closed in them.
  std::vector<int> keep_fds;
  // Where argv lies: the watcher writes its own name there, so that `pkill -f` of the job does not hit it. May be
  // empty.
  std::span<char> title;
};

// Trivially copyable: it crosses from the watcher process in shared memory.
struct RankStatus {
  pid_t pid = 0;             // 0: was never started
  int wait_status = 0;       // as from waitpid; valid when `exited`
  double seconds = 0;        // from its start to its end
  bool exited = false;       // false at the end of a job: it did not even die of SIGKILL
  bool collateral = false;   // it failed because another rank had (its error file says so)
  bool told_to_end = false;  // the launcher had sent it a signal that ends the job before it ended
  bool needed_kill = false;  // it was still there when SIGKILL was sent
  bool walked_out = false;   // it returned 0 without col::finalize() while other ranks were unfinished
};

struct JobResult {
  int exit_code = 0;  // by the table in common/exit_codes.hpp
  int signal = 0;     // the job was interrupted by this signal: die of it (signals.hpp), 0 when not
  int culprit = -1;   // the rank that decided the exit code, -1 when none did
  std::string error;  // one line: why the launcher failed; empty when it did not
  std::vector<RankStatus> ranks;
};

}  // namespace col::launch

// How a job ended.
#pragma once

#include <sys/types.h>
#include <sys/wait.h>

#include <cstdint>
#include <string>
#include <utility>

#include "common/exit_codes.hpp"

namespace col::launch {

struct RankStatus {
  pid_t pid = 0;           // 0: it was never started
  int wait_status = 0;     // as from waitpid; valid if `exited`
  double started = 0;      // seconds from the start of the job to the start of the rank
  double seconds = 0;      // from its start to its end
  double cpu_seconds = 0;  // user and system time of it and of its descendants that it waited for
  std::uint64_t peak_rss_bytes = 0;
  bool exited = false;         // false at the end of a job: not even SIGKILL ended it
  bool collateral = false;     // it failed because another rank had failed (its error file says so)
  bool told_to_end = false;    // the launcher sent it a signal that ends the job before it ended
  bool needed_kill = false;    // it still existed when SIGKILL was sent
  bool walked_out = false;     // it returned 0 without col::finalize() while other ranks were not finished
  bool out_of_memory = false;  // the kernel killed it, or a process of its control group, for lack of memory
};

// The exit code in a shell: the exit code, or 128 + the signal that killed it. Requires: `status.exited`.
inline int exit_code_of(const RankStatus& status) noexcept {
  if (WIFSIGNALED(status.wait_status)) return tools::exit_code::kSignalBase + WTERMSIG(status.wait_status);
  return WEXITSTATUS(status.wait_status);
}

// Why a job ended early.
enum class EndCause {
  none,  // it did not: all ranks ended by themselves and successfully
  rank_failed,
  interrupted,     // by a signal to the launcher
  timed_out,       // --timeout
  exit_timed_out,  // --exit-timeout
  output_closed,   // the reader of the output is gone
  node_lost,       // another node of the job cannot be reached any more, or its launcher has ended
  launcher_failed,
};

struct JobResult {
  int exit_code = 0;  // by the table in common/exit_codes.hpp
  int signal = 0;     // the signal that interrupted the job: die of it (signals.hpp); 0 if none did
  EndCause cause = EndCause::none;
  int culprit =
      -1;  // the global rank to blame: the first that failed by itself (with --exit-policy max, the worst); -1: none
  std::string error;  // one line: why the launcher failed; empty if it did not
};

inline JobResult launcher_failure(int exit_code, std::string error) {
  JobResult result;
  result.exit_code = exit_code;
  result.cause = EndCause::launcher_failed;
  result.error = std::move(error);
  return result;
}

}  // namespace col::launch

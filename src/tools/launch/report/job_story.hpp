// Everything that is known about a job at its end. The final report is made of it, in words and as JSON.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <col/job.hpp>

#include "core/epoch_line.hpp"
#include "launch/job/job_result.hpp"
#include "launch/processes/job_directory.hpp"
#include "launch/report/call_times.hpp"
#include "launch/report/rank_use.hpp"

namespace col::launch {

struct Stack {
  std::string source;              // the tool that took it: "gdb", "eu-stack", "/proc"
  std::vector<std::string> lines;  // as they should be shown
};

// What keeps a process that runs from getting on.
struct Burden {
  std::uint64_t resident_bytes = 0, swapped_bytes = 0;  // of its memory
  bool waits_for_disk = false;                          // in the kernel, and no signal could end that

  // So much of it that whatever it does waits for the swap device again and again.
  bool is_swapping() const {
    constexpr std::uint64_t kLittle = 64 << 20;
    return swapped_bytes >= kLittle && swapped_bytes >= resident_bytes / 4;
  }
};

struct RankStory {
  int rank = 0;  // global
  int local_rank = 0;
  int node_rank = 0;
  std::string host;
  std::vector<int> cpus;  // that it was bound to; empty: it was not
  std::string why_not;    // why it was not, though it could have been; empty: nobody asked for it, or it was
  RankStatus status;
  std::optional<std::uint64_t> epoch = {};  // of the job's group, in which it was last; none: it was not in it
  int restarts = 0;                         // other processes that were started in its place
  bool is_spare = false;                    // it has slept, and no rank has taken it in
  std::optional<RankError> said;            // from its error file
  std::optional<RankActivity>
      last;                    // what it was doing in col when the job began to end; nothing when it does not use col
  std::uint64_t seen_ns = 0;   // the time of that, by the clock of RankActivity::since_ns
  RankHistory history;         // from the same time
  Burden burden;               // the same; of ranks that do not wait
  std::optional<Stack> stack;  // taken before it was ended
  CallTimes times;             // empty unless somebody has watched
  std::optional<RankUse> use;  // only for who has asked for it
  std::vector<std::string> last_stderr;  // its last lines, the oldest first; kept for ranks that failed
};

// An epoch of the job's group after the first, as a rank of this node has told it.
struct EpochStory {
  double at = 0;  // seconds from the start of the job
  core::EpochLine line = {};
};

// A node that has ranks, and of which nothing is known: it has not answered.
struct SilentNode {
  int node_rank = 0;
  std::string host = {};  // empty: not known
  int first_rank = 0;
  int ranks = 0;
};

struct JobStory {
  std::string tool = "colrun";
  std::string job_id;
  std::vector<std::string> command_line;  // repeats the run
  std::string directory;                  // where it was started
  std::chrono::system_clock::time_point started_at;
  double seconds = 0;
  int nodes = 1;
  int restarts = 0;                     // that were made
  std::size_t processes_left = 0;       // descendants that SIGKILL did not end
  JobResult result;                     // its cause is `none` while the job runs
  std::vector<RankStory> ranks;         // by global rank
  std::vector<SilentNode> silent;       // whose ranks are not in `ranks`; only while the job runs
  std::vector<EpochStory> epochs = {};  // of a job whose ranks go on in epochs
};

}  // namespace col::launch

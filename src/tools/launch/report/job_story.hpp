// Everything that is known about a job at its end. The final report is made of it, in words and as JSON.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <col/job.hpp>

#include "core/epoch_line.hpp"
#include "launch/job/job_result.hpp"
#include "launch/processes/job_directory.hpp"

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

// How long some calls took, to compare them with those of ranks on other hosts: one of `stride`, which is a power of
// two and as small as there is room for. Their numbers decide, and not the host: all keep the same ones without a word,
// and one that keeps fewer keeps some of those.
struct SampledCalls {
  static constexpr std::size_t kMost = 256;

  std::uint64_t token = 0;  // of their group, which no other group has; 0: there are none
  std::uint64_t stride = 1;
  int members = 0;                                                  // of the group, on this host
  std::vector<std::pair<std::uint64_t, std::uint64_t>> calls = {};  // number and nanoseconds, ascending

  void add(std::uint64_t of_token, std::uint64_t number, std::uint64_t took_ns);
  void thin();  // to half of them

 private:
  bool keeps(std::uint64_t number) const;
};

// The calls of one kind in one group. CallWatch compares ranks of one host, compare_hosts() those of several. Where
// calls came faster than they could be looked at, all numbers are estimated from those that were seen.
struct CallSite {
  std::string group;
  std::string op;
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;  // of the buffers that all ranks have in common
  double seconds = 0;       // in calls that have waited, or are long: from the first wait, or the begin, to the end

  // About the calls that were seen on all ranks of the group on this host, or on all its hosts:
  std::uint64_t compared = 0;
  double waited = 0;       // seconds for the last one to come
  std::uint64_t last = 0;  // how often this rank was that one
  double late = 0;         // how long the others waited then, on average of them; the sum in seconds

  SampledCalls sampled = {};  // until compare_hosts() has made the four numbers above of it
  int hosts = 1;              // that were compared
  double doubt = 0;           // seconds: who was last by less than that is not known, between hosts
};

// The rank's main thread, as the kernel and looks at its record tell.
struct OwnTime {
  double seconds = 0;  // how long it was looked at
  double outside = 0;  // of these, in none of col's calls
  double cpu = 0;      // on a processor
  double queued = 0;   // ready to run, with no processor
};

// How long the calls of a rank took, and whether it or others came last to them. It is what `colrun --report` says
// about a job that is slow.
struct CallTimes {
  std::vector<CallSite> sites;  // by group and name
  OwnTime own;
  // Seconds that a message needs to the host where the launchers meet, at most; only with several nodes.
  std::optional<double> distance;
};

// A rank's calls and its use since somebody began to look. Two of them make rates.
struct RankUse {
  std::uint64_t at_ns = 0;           // by the clock of the rank's host, as RankActivity::since_ns
  std::optional<double> calls = {};  // that have ended; nothing of a rank that does not use col
  double bytes = 0;                  // that they moved
  double waited = 0;                 // seconds, with the wait that goes on
  std::optional<double> cpu = {};    // seconds of processors, of all its threads; nothing if its process is gone
  double queued = 0;                 // seconds for which its main thread was ready to run, and had no processor
  std::uint64_t rss_bytes = 0;
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

// The parts of a question about the ranks of a job.
struct AskedFor {
  int calls = 0;        // so many of the last ones of each rank
  bool stacks = false;  // where each rank is in its program
  bool use = false;     // RankStory::use
};

}  // namespace col::launch

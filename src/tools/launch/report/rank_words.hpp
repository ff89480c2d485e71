// What the ranks were doing in col when their job began to end, and how they ended, in words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/job/job_result.hpp"
#include "launch/job/job_spec.hpp"
#include "launch/report/job_story.hpp"

namespace col::launch {

// "exited with code 7", "was killed by SIGSEGV".
std::string describe_wait_status(int wait_status);

// The same, and "was killed by SIGKILL: out of memory (peak RSS 12.3 GiB)".
std::string describe_status(const RankStatus& status);

// "rank 2", "ranks 0-2, 5".
std::string name_ranks(const std::vector<int>& ranks);

// Its command line, without the folder of the program.
std::string command_of(const JobStory& story);

// "host n2 (node 1, ranks 2-3)".
std::string name_silent_node(const SilentNode& node);

// "12.3 GiB", "812 MiB", "96 KiB".
std::string describe_bytes(std::uint64_t bytes);

// "allreduce #417", "recv"; messages have no number of their own.
std::string name_call(const RankActivity& activity);
std::string name_group(const RankActivity& activity);

// Whether it is in a call of col; else RankStory::last is what it was in. A record that could not be read has no name
// of an operation.
bool is_in_call(const RankStory& rank);
// The label of its call, or of the last one; empty: it has none.
std::string label_of(const RankStory& rank);

// In a job whose ranks go on in epochs: the failure of the last epoch's ranks that gives the exit code. Null: they have
// ended well, whoever was lost before.
const RankStory* failure_that_counts(const std::vector<RankStory>& ranks, ExitPolicy policy);

// In any other job that ended because a rank failed: its exit code, by the policy, is that of JobResult::culprit, or
// rank 0's own word if it had one, or the highest; the rank that has that is then the culprit.
void apply_exit_policy(JobResult& result, const std::vector<RankStory>& ranks, ExitPolicy policy);

// Whether it failed, and neither the launcher nor another rank's failure is the reason.
bool failed_on_its_own(const RankStatus& status);

// The rank that a job waited for in the end, if the job ran out of time, or if the first rank to fail did: the first
// culprit of why(). Null if there is none, if it is dead, or if several wait in a circle.
const RankStory* hung_rank(const JobStory& story);

// The sentence about it, or about such a circle; empty if there is neither.
std::string why_it_hung(const JobStory& story);

// The rank to blame: the one that hung, else the first one that failed by itself; -1: none.
int blamed_rank(const JobStory& story);

// "ranks 0, 2-3 wait in allreduce #417 of group 'default'; rank 1 has not called it (last: barrier #12)". There is one
// line for each call that ranks are in, with the earliest call of a group first, then one line for the ranks that are
// in no call. Empty if no rank is in a call, unless the job ended because it took too long.
//
// Numbers are those of the group's collectives. A rank that is in no call is compared only with the calls of the group
// that it used last.
std::vector<std::string> describe_calls(const JobStory& story);

}  // namespace col::launch

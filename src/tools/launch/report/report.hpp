// The report at the end of a job: one block in which every line begins with the tool's name.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/report.hpp"
#include "common/style.hpp"
#include "launch/report/job_story.hpp"

namespace col::launch {

struct ReportStyle {
  tools::Style text = {};
  std::size_t columns = 0;  // width of the terminal: lines of stacks are cut there; 0: they are not cut
  // The limit of --timeout or --exit-timeout, if it is the reason why the job ended.
  std::optional<std::chrono::milliseconds> limit = {};
};

inline constexpr std::size_t kStderrLines = 20;  // how many lines of the culprit are repeated

// Who failed and how, what it said, what the others were doing, and what became of them. Lines have no newlines. There
// are none if all is well, or if only the launcher failed (the front process prints result.error).
std::vector<std::string> report_lines(const JobStory& story, const ReportStyle& style = {});

inline constexpr std::size_t kMaxTableRanks = 16;

// The start and exit skew, then a table: each rank's times, CPU time and peak RSS; with more than kMaxTableRanks ranks,
// medians and extremes. Empty if no rank has run.
tools::Part usage_part(const JobStory& story);

// The epochs of a job whose ranks go on in such, with the time of each stage. Empty if there was but the first.
tools::Part epochs_part(const JobStory& story);

// The stacks alone, as they stand in that report.
std::vector<std::string> stack_lines(const JobStory& story, const ReportStyle& style = {});

// A rank that makes others wait again and again.
struct Slow {
  int rank = 0;
  std::string group, op;
  std::uint64_t last = 0, compared = 0;  // it was the last in so many of the calls that could be compared
  double late = 0;                       // on average of those, in seconds
  std::string sentence = {};             // without a full stop
};

// The one that costs the most. Nothing if no rank does so clearly: comes last much more often than its share, and costs
// the others a noticeable part of the time in which it was in its own code.
std::optional<Slow> find_slow(const JobStory& story);

// The sentence, and a table of all groups and kinds of calls. Empty if nothing was watched.
tools::Part slow_part(const JobStory& story);

// The ranks that came last to the calls of groups that have ranks on several hosts.
//
// Makes CallSite::compared, waited, last and late of such groups anew, from the calls that all ranks have sampled, and
// removes the samples, which are much. A second time, it changes nothing. As between ranks of one host, only durations
// are compared, and no clock (CallWatch). What the last rank sends is with its neighbours sooner than on other hosts,
// so what is less than the time of a message between the two hosts that are furthest from each other says nothing. Does
// nothing unless all nodes have watched their ranks.
void compare_hosts(JobStory& story);

}  // namespace col::launch

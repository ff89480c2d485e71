// The report at the end of a job: one block in which every line begins with the tool's name.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "common/report.hpp"
#include "common/style.hpp"
#include "launch/report/job_story.hpp"
#include "launch/report/rank_words.hpp"

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

}  // namespace col::launch

// When ranks started and ended, and what resources they used; also for a job that went well (--report).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "launch/report/report.hpp"

namespace col::launch {

inline constexpr std::size_t kMaxTableRanks = 16;

// The start and exit skew, then a table: each rank's times, CPU time and peak RSS; with more than kMaxTableRanks ranks,
// medians and extremes. Every line begins with the tool's name. Empty if no rank has run.
std::vector<std::string> usage_lines(const JobStory& story, const ReportStyle& style = {});

}  // namespace col::launch

// When ranks started and ended and what they took, of a job that may have gone well (--report).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "launch/report/report.hpp"

namespace col::launch {

inline constexpr std::size_t kMaxTableRanks = 16;

// Start and exit skew, then a table: each rank's times, CPU time and peak RSS, or with more than kMaxTableRanks of them
// medians and extremes. Every line begins with the tool's name. Empty when no rank has run.
std::vector<std::string> usage_lines(const JobStory& story, const ReportStyle& style = {});

}  // namespace col::launch

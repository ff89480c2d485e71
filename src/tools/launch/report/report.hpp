// What the user reads at the end of a job: one block, every line begins with the tool's name.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "common/style.hpp"
#include "launch/report/job_story.hpp"
#include "launch/report/rank_words.hpp"

namespace col::launch {

struct ReportStyle {
  tools::Style text = {};
  std::size_t columns = 0;  // of the terminal: lines of stacks are cut there; 0: they are not
  // What --timeout or --exit-timeout allowed, when that is why the job ended.
  std::optional<std::chrono::milliseconds> limit = {};
};

inline constexpr std::size_t kStderrLines = 20;  // of the culprit, that are repeated

// Who failed, and how; what it said; what the others were doing, and what became of them. Lines without newlines; none
// when all is well, or when only the launcher failed (result.error is the front process's to print).
std::vector<std::string> report_lines(const JobStory& story, const ReportStyle& style = {});

}  // namespace col::launch

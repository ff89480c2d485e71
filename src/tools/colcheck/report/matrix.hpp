// The output of colcheck at its end. All functions are pure.
#pragma once

#include <string>

#include "colcheck/report/tally.hpp"
#include "colcheck/results.hpp"
#include "common/style.hpp"

namespace col::colcheck {

// Primitives x backends, with notes below. A cell is good only if something ran and nothing failed. A cell without any
// case says so.
std::string support_matrix(const Results& results, const Tally& tally, tools::Style style);

// Properties x backends: passed/failed/skipped, with the meaning in words.
std::string property_table(const Tally& tally, tools::Style style);

// "✘ TOKEN: rank 2: what is wrong" and, where one was found, the smallest case that fails too. The first 50 failures.
std::string failure_lines(const Results& results, tools::Style style);

// "– 3 skipped: why".
std::string skip_lines(const Tally& tally, tools::Style style);

// The ranks' GPUs, and the NCCL; empty if no case was about GPUs.
std::string gpu_lines(const Results& results, tools::Style style);

// "2,412 cases passed, 0 failed, 3 skipped, all of nccl skipped (a skip is not a pass) in 14.2 s; seed 0x1f".
std::string summary_line(const Results& results);

// One case when it ends, for --verbose: "✔ TOKEN", "✘ TOKEN: rank 2: what is wrong", "– TOKEN: why it was skipped".
// Without a newline.
std::string result_line(const CaseResult& result, bool utf8);

// All of these except result_line(); without the tables if the run was a --repro. No newline at the end.
std::string terminal_report(const Results& results, tools::Style style);

}  // namespace col::colcheck

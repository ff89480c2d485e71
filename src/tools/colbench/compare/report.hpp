// The output of `colbench compare`. All functions are pure.
#pragma once

#include <string>
#include <vector>

#include "colbench/compare/compare.hpp"
#include "common/style.hpp"

namespace col::colbench {

// The names of the rows of one table: text_of() and, if rows differ in it, ranks, root, device and cache.
std::vector<std::string> row_names(const std::vector<CellSpec>& specs);
// "0.031", "<0.001".
std::string p_text(double p);
// "0.981 to 1.032"; "-" if there is none.
std::string interval_text(const Interval& interval);

// The rows with a verdict for each, and '#' lines below: what was left out and why, warnings, and at the end a summary
// of the verdicts. Whole lines.
std::string comparison_table(const Comparison& comparison, tools::Style style);

// "12 rows compared: 1 faster, 2 slower, 9 undecided; 2 left out".
std::string comparison_summary(const Comparison& comparison);

// The same as JSON; `a` and `b` name the two runs:
// {"schema": "colbench-compare", "schema_version": 1, "a", "b",
//  "rule":     {"alpha", "min_effect", "interleaved", "resamples", "seed"},
//  "cells":    [{"spec": as in colbench's results, "a": {"launches", "median", "ran"}, "b": likewise,
//                "ratio", "ratio_low", "ratio_high", "p", "p_holm", "dependence", "verdict", "why"}],
//  "left_out": [{"spec", "why"}], "warnings": [text], "summary"}
// Medians are in seconds.
std::string comparison_json(const Comparison& comparison, const std::string& a, const std::string& b);

}  // namespace col::colbench

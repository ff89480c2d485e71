// The results of a run as a table, as CSV and as a page.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "colbench/cell/results.hpp"
#include "common/report.hpp"

namespace col::colbench {

inline constexpr std::size_t kTableColumns = 120;  // unless a terminal has fewer

// The rows, aligned, in `style.columns` columns: what is equal in all of them is said once above. Columns that there is
// no room for are left out and named. All other lines begin with '#': what ran and on what, above; why a row is invalid
// or was not measured, warnings, and how the run ended, below. `legend` adds a line for every column. Whole lines, each
// with its newline. Pure.
std::string table_report(const Results& results, tools::Style style, bool legend);

// The lines below them: the reasons, numbered, warnings, and how the run ended.
std::vector<tools::Note> notes_of(const Results& results);

// For spreadsheets and data frames: a header line and a row for every cell. Times are in nanoseconds with at most one
// decimal, bandwidths in bytes per second; what is not there is empty. Pure.
std::string csv_results(const Results& results);

// All that is said of them, for pages and other forms: the results in words, what the command has to say of its `own`
// (if that has a title), a figure for what is compared, every row with all its statistics, the machine, the command,
// and json_results() for programs. Pure.
tools::Report report_of(const Results& results, const tools::Part& own = {});

// A figure for each operation that has a size and each number of ranks, in the order in which they come: time and bus
// bandwidth. A series joins cells that differ in nothing but their size. The notes tell how to read them, what was left
// out (what is invalid, was not measured, or has no size), and at last where it was measured.
tools::Part figures_of(const Results& results);

// Them as an SVG document. Throws tools::UsageError when no result has a size.
std::string plot_svg(const Results& results);

// Throws tools::UsageError unless `path`, which `option` was given, is a name for such a document.
void check_plot(const std::string& option, const std::string& path);

}  // namespace col::colbench

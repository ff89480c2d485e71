// The rows of a run as charts. All of it pure.
#pragma once

#include <string>

#include "colbench/cell/results.hpp"
#include "common/report.hpp"

namespace col::colbench {

// A figure for each operation that has a size and each number of ranks, in the order in which they come: time and bus
// bandwidth. A series joins cells that differ in nothing but their size. The notes tell how to read them, what was left
// out (what is invalid, was not measured, or has no size), and at last where it was measured.
tools::Part figures_of(const Results& results);

// Them as an SVG document. Throws tools::UsageError when no result has a size.
std::string plot_svg(const Results& results);

// Throws tools::UsageError unless `path`, which `option` was given, is a name for such a document.
void check_plot(const std::string& option, const std::string& path);

}  // namespace col::colbench

// The results as a page for a browser.
#pragma once

#include <string>

#include "colbench/results.hpp"

namespace col::colbench {

// A complete HTML document in UTF-8 that refers to nothing outside of itself and runs no scripts: the results in words,
// the curves (if gnuplot can draw them; otherwise the reason), every row with all its statistics, the machine, the
// command, and json_results() in a <script type="application/json">. Blocks while gnuplot draws, for 60 seconds at
// most. Does not throw if a drawing fails.
std::string html_report(const Results& results);

}  // namespace col::colbench

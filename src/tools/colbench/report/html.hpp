// The results as a page for a browser.
#pragma once

#include <string>

#include "colbench/results.hpp"

namespace col::colbench {

// A whole HTML document in UTF-8 that refers to nothing outside itself and runs no scripts: what was found in words,
// the curves (when gnuplot can draw them; else why not), every row with all its statistics, the machine, the command,
// and json_results() in a <script type="application/json">. Blocks while gnuplot draws, 60 seconds at most. Does not
// throw for want of a drawing.
std::string html_report(const Results& results);

}  // namespace col::colbench

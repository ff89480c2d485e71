// The results as CSV, for spreadsheets and data frames.
#pragma once

#include <string>

#include "colbench/results.hpp"

namespace col::colbench {

// A header line and a row for every cell, as RFC 4180 has it: lines end with CRLF, a field with a comma, a quote or a
// line end in it is quoted. Times are in nanoseconds with at most one decimal, bandwidths in bytes per second; what is
// not there is empty. Pure.
std::string csv_results(const Results& results);

}  // namespace col::colbench

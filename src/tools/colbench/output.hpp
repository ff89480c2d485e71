// The end of every command that measures.
#pragma once

#include "colbench/options.hpp"
#include "colbench/results.hpp"
#include "common/screen.hpp"

namespace col::colbench {

// Throws UsageError when one of the files could not be written, before anything is measured.
void check_outputs(const Output& output);

// Writes the files. Returns the exit code: that of the results, or 2 when a file cannot be written, which is said.
int write_outputs(const Results& results, const Output& output);

// Prints the table, then write_outputs().
int report(const Results& results, const Output& output, const tools::Screen& screen);

}  // namespace col::colbench

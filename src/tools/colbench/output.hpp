// The end of every command that measures.
#pragma once

#include <string>

#include "colbench/options.hpp"
#include "colbench/results.hpp"
#include "common/screen.hpp"

namespace col::colbench {

// Throws UsageError if one of the files could not be written; called before anything is measured.
void check_outputs(const Output& output);

// Writes the files. Returns the exit code: that of the results, or 2 if a file cannot be written, which it reports.
int write_outputs(const Results& results, const Output& output);

// write_outputs(), then prints `text`: a failure to print must not lose the files. Throws tools::WriteError.
int finish(const Results& results, const Output& output, const std::string& text);

// finish() with the table.
int report(const Results& results, const Output& output, const tools::Screen& screen);

}  // namespace col::colbench

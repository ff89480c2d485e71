// The notes below tables other than the usual one.
#pragma once

#include <string>

#include "colbench/results.hpp"
#include "common/style.hpp"

namespace col::colbench {

// A line that begins with '#' for every warning, for every reason why cells are invalid or were not measured, and for
// an early end. Empty if there is nothing to say. Pure.
std::string notes_text(const Results& results, tools::Style style);

}  // namespace col::colbench

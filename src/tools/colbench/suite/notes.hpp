// What must be said below the tables that are not the usual one.
#pragma once

#include <string>

#include "colbench/results.hpp"
#include "common/style.hpp"

namespace col::colbench {

// A line that begins with '#' for every warning, for every reason why cells count for nothing or were not measured, and
// for an early end. Empty when there is nothing to say. Pure.
std::string notes_text(const Results& results, tools::Style style);

}  // namespace col::colbench

// What colbench prints when it has measured.
#pragma once

#include <string>

#include "colbench/results.hpp"
#include "common/style.hpp"

namespace col::colbench {

inline constexpr std::size_t kTableColumns = 120;

// The rows, aligned, in kTableColumns columns: what is equal in all of them is said once above. Columns that there is
// no room for are left out and named. All other lines begin with '#': what ran and on what, above; why a row is invalid
// or was not measured, warnings, and how the run ended, below. `legend` adds a line for every column. Whole lines, each
// with its newline. Pure.
std::string table_report(const Results& results, tools::Style style, bool legend);

}  // namespace col::colbench

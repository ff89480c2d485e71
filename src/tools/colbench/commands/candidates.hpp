// Which algorithms are compared with each other.
#pragma once

#include <string>
#include <vector>

#include <col/select.hpp>

#include "colbench/cell.hpp"

namespace col::colbench {

// Algorithms with parameters ("ring_pipelined:segment=512K") that the rules of the tables in use may run for such a
// cell, for any size. "all" knows only defaults, and would leave them out.
std::vector<std::string> tuned_variants(const SelectionTable& table, const CellSpec& cell);

// `cells`; after each cell for "all" algorithms, there is one for every such variant of the built-in table.
std::vector<CellSpec> with_tuned_variants(const std::vector<CellSpec>& cells);

}  // namespace col::colbench

// The results of `colbench bisect`, in words and as a table. All functions are pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "colbench/p2p/cuts.hpp"
#include "colbench/p2p/outliers.hpp"
#include "colbench/results.hpp"
#include "common/style.hpp"

namespace col::colbench {

// One cut, from the cells that measured it. Bandwidths count both directions; 0: not measured.
struct CutResult {
  Cut cut = {};
  double together = 0;                   // bytes per second of all pairs at once
  double alone = 0;                      // the sum of what each pair reaches alone
  double best_pair = 0, worst_pair = 0;  // alone
};

// `bytes`: the size of the messages to use.
std::vector<CutResult> cut_results(std::span<const Cell> cells, int ranks, std::size_t bytes);
// The pairs that were measured alone.
std::vector<PairTime> alone_times(std::span<const Cell> cells, std::size_t bytes);

// Which ranks or pairs explain slow cuts, or that none does; one sentence on each line.
std::string explanation(std::span<const CutResult> cuts, const Outliers& outliers, const std::string& what);

// The headline, the table of the cuts and the explanation.
std::string bisect_text(std::span<const Cell> cells, int ranks, std::size_t bytes, tools::Style style);

}  // namespace col::colbench

// Cuts through all ranks, with the pairs that talk across each cut; and the pairs that help to find a slow rank. All
// functions are pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "colbench/cell/results.hpp"
#include "colbench/p2p/outliers.hpp"
#include "common/style.hpp"

namespace col::colbench {

// ---- Cuts -----------------------------------------------------------------------------------------------------------

using RankPair = std::pair<int, int>;  // the lower rank first

struct Cut {
  std::string groups;                // of CellSpec: "bisect", "bisect:2"
  std::string text;                  // "ranks 0-3 against 4-7"
  std::vector<RankPair> pairs = {};  // each has a rank on either side
  bool operator==(const Cut&) const = default;
};

// The pairs that work at the same time in a cell with these `groups`, as the ranks will see it.
std::vector<RankPair> pairs_at_once(const std::string& groups, int ranks);

// The bisection, then a cut for each bit of the rank: every 1, 2, 4 … ranks against the next group of the same size. No
// two have the same pairs. Requires: ranks >= 2.
std::vector<Cut> cuts_of(int ranks);

// The pairs of all cuts, and more until every rank has two partners (if there are enough ranks). They are fewer than
// all pairs, and enough to distinguish a slow rank from a slow pair. Ascending.
std::vector<RankPair> search_pairs(int ranks);

// ---- Report ---------------------------------------------------------------------------------------------------------

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

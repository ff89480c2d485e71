// Cuts through all ranks, with the pairs that talk across each cut; and the pairs that help to find a slow rank. All
// functions are pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace col::colbench {

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

}  // namespace col::colbench

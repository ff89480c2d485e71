// The numbers of ranks in the next epoch of a group.
#pragma once

#include <vector>

namespace col::group {

struct Numbering {
  std::vector<int> survivors;  // the new number of each survivor, in the order in which they were given
  std::vector<int> newcomers;  // the same for those who join, first come first
};

// Survivors keep their numbers, and newcomers fill the gaps, and then what comes after. Where that would leave a hole,
// as the group gets too small for the number of a survivor, the order of the survivors is kept, as in shrink():
// they are numbered from 0, and newcomers come behind them.
//
//   4 ranks, 1 is lost, one joins        0 · 2 3      0 n 2 3
//   4 ranks, none is lost, two join      0 1 2 3      0 1 2 3 n n
//   6 ranks, 1 and 2 are lost, one joins 0 · · 3 4 5  0 1 2 3 n
//
// `survivors`: their numbers in the last epoch. Requires: ascending, each once.
Numbering next_numbers(const std::vector<int>& survivors, int newcomers);

}  // namespace col::group

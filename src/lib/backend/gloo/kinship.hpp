// The connections that a group has from its start on: a tree, by which its ranks meet, and learn who has gone.
#pragma once

#include <algorithm>
#include <vector>

namespace col::gloo_backend {

inline constexpr int kMostChildren = 4;

inline std::vector<int> children_of(int rank, int size) {
  std::vector<int> children;
  for (int child = kMostChildren * rank + 1; child <= kMostChildren * (rank + 1) && child < size; ++child)
    children.push_back(child);
  return children;
}

// The ranks below `rank`, itself first, in an order that depends on `rank` and `size` alone.
inline std::vector<int> subtree_of(int rank, int size) {
  std::vector<int> all = {rank};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::vector<int> children = children_of(all[i], size);
    all.insert(all.end(), children.begin(), children.end());
  }
  return all;
}

// The nearest rank towards the root that has not gone; if all have, the lowest rank that has not. -1: there is none.
// So those that are left stay connected: all ways lead to the lowest of them, as each leads to a lower rank.
template <class IsGone>
int parent_of(int rank, IsGone is_gone) {
  for (int above = rank; above > 0;) {
    above = (above - 1) / kMostChildren;
    if (!is_gone(above)) return above;
  }
  for (int lower = 0; lower < rank; ++lower) {
    if (!is_gone(lower)) return lower;
  }
  return -1;
}

}  // namespace col::gloo_backend

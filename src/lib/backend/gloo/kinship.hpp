// The connections that a group has from its start on: a tree, by which its ranks meet, learn who has gone, and hear
// that other hosts live.
//
// On each host, the ranks form a tree below the lowest of them, which stands for the host. These form a tree, too. So
// there is one connection of the tree to each host but the first, whatever the order of the ranks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace col::gloo_backend {

inline constexpr int kMostChildren = 4;  // of a host, and on a host

class Kinship {
 public:
  // `hosts`: the number of each rank's host, in the order of first appearance.
  explicit Kinship(std::vector<int> hosts) : hosts_(std::move(hosts)) {
    for (int rank = 0; rank < size(); ++rank) {
      const auto host = static_cast<std::size_t>(host_of(rank));
      if (host >= members_.size()) members_.resize(host + 1);
      places_.push_back(static_cast<int>(members_[host].size()));
      members_[host].push_back(rank);
    }
  }
  // All on one host.
  explicit Kinship(int size) : Kinship(std::vector<int>(static_cast<std::size_t>(size), 0)) {}

  // Of a group of some of these ranks: its rank r is ranks[r] here.
  Kinship of_some(std::span<const int> ranks) const {
    std::vector<int> hosts;
    std::map<int, int> numbers;  // of the hosts that take part
    for (const int rank : ranks)
      hosts.push_back(numbers.emplace(host_of(rank), static_cast<int>(numbers.size())).first->second);
    return Kinship(std::move(hosts));
  }

  int size() const noexcept { return static_cast<int>(hosts_.size()); }
  int host_of(int rank) const { return hosts_[static_cast<std::size_t>(rank)]; }
  // In rank order.
  const std::vector<int>& ranks_on(int host) const { return members_[static_cast<std::size_t>(host)]; }

  std::vector<int> children_of(int rank) const {
    std::vector<int> children;
    const std::vector<int>& neighbours = ranks_on(host_of(rank));
    for_each_child(place_of(rank), neighbours.size(),
                   [&](std::size_t place) { children.push_back(neighbours[place]); });
    if (place_of(rank) != 0) return children;
    for_each_child(host_of(rank), members_.size(),
                   [&](std::size_t host) { children.push_back(members_[host].front()); });
    return children;
  }

  // The ranks below `rank`, itself first, in an order that all ranks know.
  std::vector<int> subtree_of(int rank) const {
    std::vector<int> all = {rank};
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::vector<int> children = children_of(all[i]);
      all.insert(all.end(), children.begin(), children.end());
    }
    return all;
  }

  // The nearest rank towards the root that has not gone; if all have, the lowest rank that has not. -1: there is none.
  // So those that are left stay connected: all ways lead to the lowest of them, as each leads to a lower rank.
  template <class IsGone>
  int parent_of(int rank, IsGone is_gone) const {
    for (int above = directly_above(rank); above >= 0; above = directly_above(above)) {
      if (!is_gone(above)) return above;
    }
    for (int lower = 0; lower < rank; ++lower) {
      if (!is_gone(lower)) return lower;
    }
    return -1;
  }
  int parent_of(int rank) const { return directly_above(rank); }

  // The lowest rank of its host that has not gone; -1: there is none.
  template <class IsGone>
  int speaker_of(int host, IsGone is_gone) const {
    for (const int rank : ranks_on(host)) {
      if (!is_gone(rank)) return rank;
    }
    return -1;
  }

 private:
  int place_of(int rank) const { return places_[static_cast<std::size_t>(rank)]; }

  template <class Visit>
  static void for_each_child(int number, std::size_t count, Visit visit) {
    const auto first = static_cast<std::size_t>(kMostChildren * number + 1);
    for (std::size_t child = first; child < std::min(first + kMostChildren, count); ++child) visit(child);
  }
  // -1 for rank 0.
  int directly_above(int rank) const {
    if (place_of(rank) > 0)
      return ranks_on(host_of(rank))[static_cast<std::size_t>((place_of(rank) - 1) / kMostChildren)];
    return host_of(rank) > 0 ? ranks_on((host_of(rank) - 1) / kMostChildren).front() : -1;
  }

  std::vector<int> hosts_;                 // by rank
  std::vector<int> places_;                // by rank: its number among those of its host
  std::vector<std::vector<int>> members_;  // by host
};

}  // namespace col::gloo_backend

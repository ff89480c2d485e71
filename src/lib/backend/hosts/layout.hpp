// Which ranks of a group share a host, as one of them sees it.
#pragma once

#include <span>
#include <vector>

#include <col/backend.hpp>

namespace col::hosts_backend {

struct Layout {
  int rank = 0;
  std::vector<int> near;   // the ranks of this host in rank order, this one included
  std::vector<int> far;    // all others
  std::vector<int> place;  // by rank: its number among `near`; -1 on another host

  // Alone: as if every other rank was on another host.
  static Layout of(std::span<const PeerInfo> peers, int rank, bool alone = false);

  int size() const noexcept { return static_cast<int>(place.size()); }
  bool has_neighbours() const noexcept { return near.size() > 1; }
  int place_of(int peer) const noexcept { return place[static_cast<std::size_t>(peer)]; }
};

inline Layout Layout::of(std::span<const PeerInfo> peers, int rank, bool alone) {
  Layout layout;
  layout.rank = rank;
  const std::vector<int> hosts = hosts_of(peers);
  for (int peer = 0; peer < static_cast<int>(hosts.size()); ++peer) {
    const bool shares = hosts[static_cast<std::size_t>(peer)] == hosts[static_cast<std::size_t>(rank)];
    const bool is_near = peer == rank || (shares && !alone);
    layout.place.push_back(is_near ? static_cast<int>(layout.near.size()) : -1);
    (is_near ? layout.near : layout.far).push_back(peer);
  }
  return layout;
}

}  // namespace col::hosts_backend

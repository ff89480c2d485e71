// Which ranks of a group share a host, as one of them sees it, and what is asked of the two sides.
#pragma once

#include <span>
#include <vector>

#include <fmt/format.h>

#include <col/request.hpp>
#include <col/store.hpp>

#include "core/hash.hpp"

namespace col::hosts_backend {

struct Layout {
  int rank = 0;
  std::vector<int> near;   // the ranks of this host in rank order, this one included
  std::vector<int> far;    // all others
  std::vector<int> place;  // by rank: its number among `near`; -1 on another host

  // Alone: as if every other rank was on another host.
  static Layout of(std::span<const PeerInfo> peers, int rank, bool alone = false);
  // Of a group of some ranks of this one: its rank r is ranks[r] here.
  Layout of_some(std::span<const int> ranks, int rank) const;

  int size() const noexcept { return static_cast<int>(place.size()); }
  bool has_neighbours() const noexcept { return near.size() > 1; }
  int place_of(int peer) const noexcept { return place[static_cast<std::size_t>(peer)]; }

 private:
  void add(bool is_near);  // the next rank
};

inline Layout Layout::of(std::span<const PeerInfo> peers, int rank, bool alone) {
  Layout layout;
  layout.rank = rank;
  const std::vector<int> hosts = hosts_of(peers);
  for (int peer = 0; peer < static_cast<int>(hosts.size()); ++peer) {
    const bool shares = hosts[static_cast<std::size_t>(peer)] == hosts[static_cast<std::size_t>(rank)];
    layout.add(peer == rank || (shares && !alone));
  }
  return layout;
}

inline Layout Layout::of_some(std::span<const int> ranks, int own_rank) const {
  Layout layout;
  layout.rank = own_rank;
  for (const int of_old : ranks) layout.add(place_of(of_old) >= 0);
  return layout;
}

inline void Layout::add(bool is_near) {
  const int peer = size();
  place.push_back(is_near ? static_cast<int>(near.size()) : -1);
  (is_near ? near : far).push_back(peer);
}

// For the ranks of this host. They keep their ranks in the group, by which errors call them. Has no store if `of` has
// none.
struct NearRequest {
  NearRequest(const Layout& layout, const ConnectRequest& of) : request(of) {
    for (const int rank : layout.near) peers.push_back(of.peers[static_cast<std::size_t>(rank)]);
    const int first = layout.near.front();
    request.rank = layout.place_of(layout.rank);
    request.size = static_cast<int>(peers.size());
    if (of.store) request.store = make_prefix_store(of.store, fmt::format("host/{}", first));
    request.peers = peers;
    request.same_host = true;
    request.token = core::Hash().add(of.token).add("host").add(first).value();
  }
  NearRequest(const NearRequest&) = delete;
  NearRequest& operator=(const NearRequest&) = delete;

  std::vector<PeerInfo> peers;
  ConnectRequest request;
};

// For all ranks.
inline ConnectRequest wire_request(const ConnectRequest& of) {
  ConnectRequest request = of;
  request.store = make_prefix_store(of.store, "wire");
  return request;
}

}  // namespace col::hosts_backend

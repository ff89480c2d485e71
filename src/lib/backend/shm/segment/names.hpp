// What errors call the ranks of a channel. In a channel between some ranks of a group (backend hosts), that is their
// number in the group and not in the channel.
#pragma once

#include <span>
#include <vector>

#include <col/channel.hpp>

namespace col::shm_backend {

class Names {
 public:
  // Every rank has its own number.
  Names() = default;
  explicit Names(std::span<const PeerInfo> peers) {
    for (const PeerInfo& peer : peers) names_.push_back(peer.rank);
  }

  int of(int rank) const noexcept {
    const auto index = static_cast<std::size_t>(rank);
    return index < names_.size() ? names_[index] : rank;  // kAnyPeer stays what it is
  }

 private:
  std::vector<int> names_;
};

}  // namespace col::shm_backend

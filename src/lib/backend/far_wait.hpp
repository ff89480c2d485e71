// How long a rank looks for a message from another host before it sleeps, where its own looks bring it.
//
// Such a message comes some 10 us after what it answers, at best. So a rank looks for about that long without a pause;
// every look asks the kernel. Then it lets others run between its looks, and then it sleeps. Where ranks share
// processors, whoever is waited for may need this one, and it lets others run at once.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstddef>

#include <col/request.hpp>

namespace col::backend {

inline constexpr auto kFarKeepingTime = std::chrono::microseconds(20);
inline constexpr auto kFarYieldingTime = std::chrono::microseconds(200);
inline constexpr int kFarLooksAtOnce = 8;
// A message that is longer is not worth it where something else moves it meanwhile: it takes long, and the processor is
// of more use to other ranks, and to whoever moves it.
inline constexpr std::size_t kMostPolledBytes = std::size_t{16} << 10;

// Whether this host has more ranks of the group than this rank may use processors.
inline bool is_crowded(const ConnectRequest& request) {
  cpu_set_t mine;
  if (::sched_getaffinity(0, sizeof mine, &mine) != 0) return true;
  if (request.peers.empty()) return request.size > CPU_COUNT(&mine);
  const auto here = [&](const PeerInfo& peer) {
    return request.same_host || peer.boot_id == request.peers[static_cast<std::size_t>(request.rank)].boot_id;
  };
  return std::count_if(request.peers.begin(), request.peers.end(), here) > CPU_COUNT(&mine);
}

}  // namespace col::backend

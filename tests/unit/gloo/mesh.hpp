// Ranks for the tests of the Gloo channel, below the group layer: connect requests made by hand.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <col/store.hpp>

#include "backend/gloo/channel.hpp"
#include "backend/gloo/connect.hpp"
#include "core/hash.hpp"
#include "support/channel_ranks.hpp"

namespace col::test {

using gloo_backend::GlooChannel;

struct Place {
  int rank = 0;
  int size = 1;
  std::shared_ptr<Store> store;
  std::uint64_t token = kToken;
  std::vector<int> hosts = {};  // of the ranks, as they are told; empty: one
  gloo_backend::HeartbeatSpec heartbeat = {};
};

// A slot whose messages have nothing to do with those of another number.
constexpr std::uint64_t slot(std::uint64_t number) {
  return number << 32;
}

inline std::unique_ptr<GlooChannel> connect(const Place& place, Duration timeout = kDeadline) {
  std::vector<PeerInfo> peers;
  for (const int host : place.hosts) {
    const std::string name = "node" + std::to_string(host);
    peers.push_back(
        {.rank = static_cast<int>(peers.size()), .hostname = name, .boot_id = name, .network_namespace = "1"});
  }
  const ConnectRequest request{.group = "g",
                               .rank = place.rank,
                               .size = place.size,
                               .store = place.store,
                               .peers = peers,
                               .same_host = true,
                               .token = place.token,
                               .socket_ifname = {}};
  WaitContext wait = wait_for(timeout);
  return std::make_unique<GlooChannel>("g", gloo_backend::connect_mesh(request, place.heartbeat, wait));
}

using RankBody = std::function<void(int rank, GlooChannel& channel)>;

// One thread per rank over one MemoryStore.
inline std::vector<Ending> run_ranks(int size, const RankBody& body) {
  const auto store = make_memory_store();
  return run_each(size, [&](int rank) {
    const auto channel = connect({.rank = rank, .size = size, .store = store});
    body(rank, *channel);
  });
}

// A call of one native collective with the fingerprint that the group layer would make.
inline Request request_for(Collective collective, std::uint64_t sequence, std::size_t count) {
  Request request;
  request.collective = collective;
  request.fingerprint = core::Hash().add(static_cast<int>(collective)).add(sequence).add(count).value();
  return request;
}

inline void barrier(GlooChannel& channel, std::uint64_t sequence, Duration timeout = kDeadline) {
  run_native(channel, request_for(Collective::barrier, sequence, 0), timeout);
}

// For the suite of all wires.
#define COL_WIRE "gloo"
using WireChannel = GlooChannel;
inline constexpr int kSidesThatFindAnotherToken = 2;
inline void work_together(GlooChannel& channel, int /*rank*/, int /*size*/, std::uint64_t round) {
  std::vector<float> data(20'000, 1.0F);
  Request request = request_for(Collective::allreduce, round, data.size());
  request.in = data;
  request.out = data;
  run_native(channel, request, std::chrono::seconds(20));
}

}  // namespace col::test

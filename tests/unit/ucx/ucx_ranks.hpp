// Ranks for the tests of the UCX channel, below the group layer: connect requests made by hand.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <col/store.hpp>

#include "backend/ucx/channel.hpp"
#include "backend/ucx/connect.hpp"
#include "support/channel_ranks.hpp"

namespace col::test {

using ucx_backend::UcxChannel;

// As if no variable were set.
inline std::optional<std::string> no_variable(std::string_view /*name*/) {
  return std::nullopt;
}

struct Place {
  int rank = 0;
  int size = 1;
  std::shared_ptr<Store> store = {};
  std::uint64_t token = kToken;
  bool same_host = true;
  std::string socket_ifname = {};
};

inline ConnectRequest request_of(const Place& place) {
  return {.group = "g",
          .rank = place.rank,
          .size = place.size,
          .store = place.store,
          .peers = {},
          .same_host = place.same_host,
          .token = place.token,
          .socket_ifname = place.socket_ifname};
}

inline std::unique_ptr<UcxChannel> connect(const Place& place, Duration timeout = kDeadline) {
  static const bool is_tame = [] {
    ucx_backend::tame(&no_variable);
    return true;
  }();
  (void)is_tame;
  WaitContext wait = wait_for(timeout);
  return std::make_unique<UcxChannel>(request_of(place),
                                      ucx_backend::meet(request_of(place), wait, &no_variable).engine);
}

using RankBody = std::function<void(int rank, UcxChannel& channel)>;

// One thread per rank over one MemoryStore.
inline std::vector<Ending> run_ranks(int size, const RankBody& body) {
  const auto store = make_memory_store();
  return run_each(size, [&](int rank) {
    const auto channel = connect({.rank = rank, .size = size, .store = store});
    body(rank, *channel);
  });
}

// For the suite of all wires.
#define COL_WIRE "ucx"
using WireChannel = UcxChannel;
inline constexpr int kSidesThatFindAnotherToken = 1;  // the other may be told by it
inline void work_together(UcxChannel& channel, int rank, int size, std::uint64_t round) {
  meet_all(channel, rank, size, round);
}

}  // namespace col::test

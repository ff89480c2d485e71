// Ranks for the tests of groups over hosts, below the group layer: threads or processes that are told where they are.
#pragma once

#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <col/channel.hpp>
#include <col/store.hpp>

#include "support/catch.hpp"
#include "support/channel_ranks.hpp"

namespace col::test {

// The host of each rank.
using Hosts = std::vector<int>;

// The backend under test, which stands for a wire: "hosts", or $HOSTS_BACKEND.
inline std::string hosts_backend() {
  const char* const chosen = std::getenv("HOSTS_BACKEND");
  return chosen != nullptr ? chosen : "hosts";
}

// Two hosts of two, two of four, four of two; ranks dealt in turn; a rank alone; three that differ. Two of them if it
// is not the first backend to go through the tests.
inline const std::vector<Hosts>& layouts() {
  static const std::vector<Hosts> all = {
      {0, 0, 1, 1}, {0, 0, 0, 0, 1, 1, 1, 1}, {0, 0, 1, 1, 2, 2, 3, 3}, {0, 1, 0, 1, 0, 1},
      {0, 1, 1, 1}, {0, 0, 0, 1, 2, 2}};
  static const std::vector<Hosts> some = {{0, 1, 0, 1, 0, 1}, {0, 0, 0, 1, 2, 2}};
  return hosts_backend() == "hosts" ? all : some;
}

inline std::unique_ptr<Channel> connect(const Hosts& hosts, int rank, std::shared_ptr<Store> store) {
  std::vector<PeerInfo> peers;
  for (std::size_t peer = 0; peer < hosts.size(); ++peer) {
    const auto number = static_cast<int>(peer);
    peers.push_back({.rank = number,
                     .global_rank = number,
                     .hostname = fmt::format("h{}", hosts[peer]),
                     .boot_id = fmt::format("b{}", hosts[peer]),
                     .network_namespace = "n"});
  }
  WaitContext wait = wait_for();
  return find_backend(hosts_backend())
      ->connect({.group = "g",
                 .rank = rank,
                 .size = static_cast<int>(hosts.size()),
                 .store = std::move(store),
                 .peers = peers,
                 .same_host = true,
                 .token = kToken,
                 .socket_ifname = {}},
                wait);
}

// What a rank's body sees.
struct HostRank {
  int rank = 0;
  const Hosts& hosts;
  Channel& channel;

  int size() const { return static_cast<int>(hosts.size()); }
  bool is_near(int peer) const {
    return hosts.at(static_cast<std::size_t>(peer)) == hosts.at(static_cast<std::size_t>(rank));
  }
};

// One thread per rank over one MemoryStore. All meet before they leave: to leave early is a fault.
inline std::vector<Ending> run_ranks(const Hosts& hosts, const std::function<void(HostRank& self)>& body) {
  const auto store = make_memory_store();
  return run_each(static_cast<int>(hosts.size()), [&](int rank) {
    const auto channel = connect(hosts, rank, make_prefix_store(store, "mesh"));
    HostRank self{rank, hosts, *channel};
    std::exception_ptr failure;
    try {
      body(self);
    } catch (...) {
      failure = std::current_exception();
    }
    store->set(fmt::format("done/{}", rank), "");
    if (failure) std::rethrow_exception(failure);
    for (int peer = 0; peer < self.size(); ++peer)
      store->wait_for(fmt::format("done/{}", peer), std::chrono::seconds(30));
  });
}

inline void run_on_layouts(const std::function<void(HostRank& self)>& body) {
  for (const Hosts& hosts : layouts()) {
    INFO("hosts of the ranks: " << fmt::format("{}", fmt::join(hosts, " ")));
    const auto endings = run_ranks(hosts, body);
    INFO(show(endings));
    CHECK(all_well(endings));
  }
}

using Data = std::vector<std::int32_t>;

// What rank `from` sends as message `number`.
inline Data message_of(int from, int number, std::size_t count) {
  Data data(count);
  for (std::size_t i = 0; i < count; ++i)
    data[i] = from * 1'000'000 + number * 1000 + static_cast<std::int32_t>(i % 1000);
  return data;
}

// A slot whose messages have nothing to do with those of another number.
constexpr std::uint64_t slot(std::uint64_t number) {
  return number << 32;
}

}  // namespace col::test

// Ranks on every backend, below the group layer: connect requests made by hand, through the public interface.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/channel.hpp>

#include "support/catch.hpp"
#include "support/divided_hosts.hpp"
#include "support/memory_channel.hpp"
#include "support/ranks.hpp"

namespace col::test {

// Connects as one of `size` ranks that all do so over `store`.
inline std::unique_ptr<Channel> connect_rank(BackendFactory& factory, std::shared_ptr<Store> store, int rank,
                                             int size) {
  std::vector<PeerInfo> peers;
  for (int r = 0; r < size; ++r)
    peers.push_back(
        {.rank = r, .global_rank = r, .pid = 0, .hostname = "here", .boot_id = "b", .network_namespace = "n"});
  WaitContext wait(Deadline::after(kDeadline));
  return factory.connect({.group = "conformance",
                          .rank = rank,
                          .size = size,
                          .store = make_prefix_store(std::move(store), "mesh"),
                          .peers = peers,
                          .same_host = true,
                          .token = 0xc01'c01ULL,
                          .socket_ifname = {}},
                         wait);
}

// One rank as its body sees it.
struct BackendRank {
  int rank = 0;
  int size = 1;
  Channel& channel;
  std::shared_ptr<Store> store;  // the ranks' own; "left/<rank>" is set after that rank has destroyed its channel
  std::uint64_t sequence = 0;

  // Stands in for the group layer's fingerprint.
  std::uint64_t next_slot() { return (++sequence) * 0x9e3779b97f4a7c15ULL; }
  bool has(Collective collective) const {
    const auto entries = channel.native_entries();
    return std::any_of(entries.begin(), entries.end(),
                       [&](const NativeEntry& entry) { return entry.collective == collective; });
  }
  // Every native entry of request.collective, one after the other; `prepare` before, `check` after each.
  void each_entry(Request request, const std::function<void()>& prepare, const std::function<void()>& check) {
    for (const NativeEntry& entry : channel.native_entries()) {
      if (entry.collective != request.collective) continue;
      request.algorithm = entry.name;
      request.fingerprint = next_slot();
      prepare();
      WaitContext wait_context(Deadline::after(kDeadline));
      channel.native(request, wait_context);
      check();
    }
  }
  int wait(Ticket ticket, Duration timeout = kDeadline) {
    WaitContext wait_context(Deadline::after(timeout));
    return channel.wait(ticket, wait_context);
  }
};

using BackendBody = std::function<void(BackendRank& rank)>;

// Runs `body` as a case on every backend that can be used here: as processes, and as threads where the ranks of the
// backend may be threads. Two of the backends are of memory: the reference, plain and with messages that overtake one
// another.
inline void on_every_backend(const BackendBody& body, const std::vector<int>& sizes = {1, 2, 4}) {
  register_divided_hosts();
  register_memory_backend();
  register_memory_backend(
      {.name = "late_memory", .longest_delay = std::chrono::milliseconds(2), .seed = 4, .rendezvous = false});
  for (const std::string& name : backend_names()) {
    BackendFactory* const factory = find_backend(name);
    REQUIRE(factory != nullptr);
    if (factory->unavailable_reason() || factory->device() != Device::Type::cpu) continue;
    if (name == "hosts_ucx") continue;  // between ranks of one host, it moves what "hosts" moves, in the same way
    const bool is_memory = name.find("memory") != std::string::npos;
    for (const int size : sizes) {
      const Body of_rank = [&](int rank, Context& context) {
        const auto store = make_prefix_store(context.spec().store, "body");
        {
          const auto channel = connect_rank(*factory, context.spec().store, rank, size);
          BackendRank self{.rank = rank, .size = size, .channel = *channel, .store = store};
          body(self);
        }
        store->set(fmt::format("left/{}", rank), "yes");
      };
      const auto check = [&](const std::vector<Outcome>& outcomes) {
        INFO("backend " << name << ", " << size << " ranks\n" << show(outcomes));
        CHECK(all_good(outcomes));
      };
      // Processes first: a fork after threads have run is the harder start.
      if (!is_memory) check(run_processes(size, of_rank));
      if (is_memory || name == "shm" || name.starts_with("hosts")) check(run_threads(size, of_rank));
    }
  }
}

// The same where there are peers.
inline void between_ranks(const BackendBody& body) {
  on_every_backend(body, {2, 4});
}

// What rank `rank` contributes: different on every rank and at every place.
inline std::vector<std::int32_t> input_of(int rank, std::size_t count) {
  std::vector<std::int32_t> data(count);
  std::iota(data.begin(), data.end(), 1000 * rank);
  return data;
}

}  // namespace col::test

// Ranks for the tests of the shared-memory channel, below the group layer.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <col/store.hpp>

#include "backend/shm/channel.hpp"
#include "backend/shm/segment/connect.hpp"
#include "backend/shm/segment/tuning.hpp"
#include "support/channel_ranks.hpp"

namespace col::test {

using shm_backend::ShmChannel;

// Larger calls go by the kernel, where calls can, and smaller ones through slots. Nothing is tried.
inline shm_backend::Tuning mixed_ways(const shm_backend::Segment& segment, int processors) {
  using namespace shm_backend;
  constexpr std::uint64_t kFrom16Kib = ~std::uint64_t{0} << 14;
  Tuning tuning = decide(shape_of(segment, processors), {.copies = KernelCopies::on});
  tuning.kernel.fill(kFrom16Kib);
  return tuning;
}

struct Place {
  int rank = 0;
  int size = 1;
  std::shared_ptr<Store> store;
  std::uint64_t token = kToken;
  shm_backend::Places places = {};
  shm_backend::LocalSegments* local = nullptr;  // null: none of this process
  shm_backend::Tuner tuner = mixed_ways;
};

inline ConnectRequest request_of(const Place& place) {
  return {.group = "g",
          .rank = place.rank,
          .size = place.size,
          .store = place.store,
          .peers = {},
          .same_host = true,
          .token = place.token,
          .socket_ifname = {}};
}

// A channel over memory that the ranks share through the store.
inline std::unique_ptr<ShmChannel> connect(const Place& place, Duration timeout = kDeadline) {
  shm_backend::LocalSegments none;
  WaitContext wait = wait_for(timeout);
  auto segment = shm_backend::connect_segment(request_of(place), wait, place.local != nullptr ? *place.local : none,
                                              place.places, place.tuner);
  return std::make_unique<ShmChannel>("g", place.rank, std::move(segment));
}

using RankBody = std::function<void(int rank, ShmChannel& channel)>;

// One thread per rank over one MemoryStore and one mapping.
inline std::vector<Ending> run_ranks(int size, const RankBody& body, const shm_backend::Tuner& tuner = mixed_ways) {
  const auto store = make_memory_store();
  shm_backend::LocalSegments local;
  return run_each(size, [&](int rank) {
    const auto channel = connect({.rank = rank, .size = size, .store = store, .local = &local, .tuner = tuner});
    body(rank, *channel);
  });
}

// The names that this backend can have left in a directory.
inline std::vector<std::string> leftovers(const std::string& directory = "/dev/shm") {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (std::string name = entry.path().filename(); name.starts_with("col-")) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace col::test

// Calls that ranks without a page in common announce for one another.
#include "group/diagnosis/announced.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>

#include <col/store.hpp>

#include "group/diagnosis/diagnosis.hpp"
#include "support/catch.hpp"
#include "support/soon.hpp"

namespace {

using col::group::Announced;
using col::group::Surroundings;

// Four ranks on two hosts.
Surroundings surroundings_of(int rank, const std::shared_ptr<col::Store>& store) {
  Surroundings surroundings;
  surroundings.rank = rank;
  surroundings.token = 7;
  surroundings.scope = store;
  for (int peer = 0; peer < 4; ++peer)
    surroundings.peers.push_back({.rank = peer,
                                  .global_rank = peer,
                                  .hostname = "",
                                  .boot_id = peer < 2 ? "one" : "other",
                                  .network_namespace = "net"});
  return surroundings;
}

struct TwoHosts {
  std::shared_ptr<col::Store> store = col::make_memory_store();
  Surroundings here = surroundings_of(0, store), there = surroundings_of(2, store);
  Announced first{here}, second{there};
};

}  // namespace

TEST_CASE("announced: the first ranks of two hosts compare by the store, once a second") {
  TwoHosts hosts;
  for (const std::uint64_t number : {1, 2}) {
    hosts.first.collective(number, 10 * number);
    hosts.second.collective(number, 10 * number);
  }
  CHECK(!hosts.first.differ());
  CHECK(!hosts.store->get("announced/0"));
  CHECK(col::test::soon([&] { return hosts.first.differ() || hosts.store->get("announced/0").has_value(); }));
  CHECK(col::test::soon([&] { return hosts.second.differ() || hosts.store->get("announced/2").has_value(); }));
  CHECK(!hosts.first.differ());
  CHECK(!hosts.second.differ());
  hosts.first.collective(3, 30);
  hosts.first.collective(4, 40);
  hosts.second.collective(3, 31);  // one call behind
  CHECK(col::test::soon([&] {
    const bool first = hosts.first.differ(), second = hosts.second.differ();
    return first && second;
  }));
}

TEST_CASE("announced: a rank that is not the first of its host leaves the store alone") {
  const auto store = col::make_memory_store();
  Surroundings surroundings = surroundings_of(1, store);
  Announced announced(surroundings);
  announced.collective(1, 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // the subject of the test: longer than a beat
  CHECK(!announced.differ());
  CHECK(!store->get("announced/1"));
}

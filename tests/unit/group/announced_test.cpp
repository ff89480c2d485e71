// Calls that ranks without a page in common announce for one another.
#include "group/diagnosis/announced.hpp"

#include <chrono>
#include <cstdint>
#include <memory>

#include <col/store.hpp>

#include "core/clock/clock.hpp"
#include "group/diagnosis/diagnosis.hpp"
#include "support/catch.hpp"
#include "support/jumping_time.hpp"

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

// Lets a beat pass in a time that jumps.
void pass_a_beat() {
  col::core::sleep_for(std::chrono::seconds(1));
}

struct TwoHosts {
  std::shared_ptr<col::Store> store = col::make_memory_store();
  Surroundings here = surroundings_of(0, store), there = surroundings_of(2, store);
  Announced first{here}, second{there};
};

}  // namespace

TEST_CASE("announced: the first ranks of two hosts compare by the store, once a second") {
  const col::test::JumpingTime time;
  TwoHosts hosts;
  for (const std::uint64_t number : {1, 2}) {
    hosts.first.collective(number, 10 * number);
    hosts.second.collective(number, 10 * number);
  }
  CHECK(!hosts.first.differ());
  CHECK(!hosts.store->get("announced/0"));
  pass_a_beat();
  CHECK(!hosts.first.differ());
  CHECK(hosts.store->get("announced/0"));
  CHECK(!hosts.second.differ());
  CHECK(hosts.store->get("announced/2"));
  hosts.first.collective(3, 30);
  hosts.first.collective(4, 40);
  hosts.second.collective(3, 31);  // one call behind
  pass_a_beat();
  CHECK(!hosts.first.differ());  // the other one has not said it yet
  CHECK(hosts.second.differ());
  pass_a_beat();
  CHECK(hosts.first.differ());
}

TEST_CASE("announced: a rank that is not the first of its host leaves the store alone") {
  const auto store = col::make_memory_store();
  const col::test::JumpingTime time;
  Surroundings surroundings = surroundings_of(1, store);
  Announced announced(surroundings);
  announced.collective(1, 1);
  pass_a_beat();
  CHECK(!announced.differ());
  CHECK(!store->get("announced/1"));
}

// How ranks come together over UCX, and how they part.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/soon.hpp"
#include "support/temp_dir.hpp"
#include "unit/ucx/ucx_ranks.hpp"

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;

TEST_CASE("ucx introduction: both sides are proven, and a replay, a reflection or another pair of ranks is refused",
          "[ucx]") {
  using ucx_backend::Introduction;
  const Introduction low("sesame", 0, 1), high("sesame", 1, 0);
  const auto keys_of_low = low.check(high.answer(low.nonce()));
  const auto keys_of_high = high.check(low.answer(high.nonce()));
  REQUIRE(keys_of_low);
  REQUIRE(keys_of_high);
  CHECK(keys_of_low->in == keys_of_high->out);
  CHECK(keys_of_low->out == keys_of_high->in);
  CHECK(keys_of_low->in != keys_of_low->out);
  CHECK(high.answer(low.nonce()).find("sesame") == std::string::npos);

  CHECK(!low.check(low.answer(low.nonce())));                            // sent back to its maker
  CHECK(!low.check(high.answer(make_nonce())));                          // for somebody else
  CHECK(!Introduction("sesame", 0, 1).check(high.answer(low.nonce())));  // an old one
  CHECK(!low.check(Introduction("sesamf", 1, 0).answer(low.nonce())));   // another secret
  CHECK(!low.check(Introduction("sesame", 2, 0).answer(low.nonce())));   // another rank
  CHECK(!low.check(high.answer(low.nonce()).substr(1)));
  CHECK(!low.check(""));
}

TEST_CASE("ucx connect: one rank's error is that of all, at once", "[ucx]") {
  const auto store = make_memory_store();
  const auto endings = run_each(2, [&](int rank) {
    Place place{.rank = rank, .size = 2, .store = store, .same_host = rank != 0, .socket_ifname = "nosuch"};
    connect(place);
  });
  INFO(show(endings));
  for (const Ending& ending : endings) {
    CHECK(ending.code == ErrorCode::unavailable);
    CHECK(ending.says("COL_SOCKET_IFNAME=nosuch"));
    CHECK(ending.says("lo (127.0.0.1)"));
    CHECK(ending.seconds < kPromptSeconds);
  }
}

TEST_CASE("ucx: a rank may leave right after its last message, and the others still get everything", "[ucx][rest]") {
  constexpr int kSize = 3;
  for (const std::size_t count : {1, 2'000, 200'000}) {
    for (int round = 0; round < 20; ++round) {
      const auto endings = run_ranks(kSize, [&](int rank, UcxChannel& channel) {
        std::vector<float> data(count, rank == 0 ? 3.0F : 0.0F);
        if (rank == 0) {
          std::vector<Ticket> tickets;
          for (int peer = 1; peer < kSize; ++peer) tickets.push_back(channel.post_send(peer, 1, data));
          for (const Ticket ticket : tickets) wait_for(channel, ticket);
          return;
        }
        recv(channel, 0, 1, data);
        expect(std::count(data.begin(), data.end(), 3.0F) == static_cast<std::ptrdiff_t>(count), "content");
      });
      INFO("round " << round << "\n" << show(endings));
      REQUIRE(all_well(endings));
    }
  }
}

TEST_CASE("ucx: one that has left in good order is told from one that was lost, also if the two never talked",
          "[ucx]") {
  const auto store = make_memory_store();
  require_well(run_each(2, [&](int rank) {
    const auto channel = connect({.rank = rank, .size = 2, .store = store});
    if (rank == 1) return;
    while (store->num_keys("address/1") != 0) {
    }
    std::vector<float> data(1);
    const Ending ending = ending_of([&] { wait_for(*channel, channel->post_recv(1, 1, data)); });
    expect(ending.code == ErrorCode::peer_lost && ending.rank == 1, ending.text);
    expect(ending.says("left the group while this rank waits for data from rank 1"), ending.text);
    expect(ending.seconds < kPromptSeconds, "at once");
  }));
}

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

namespace {

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;

int threads_now() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line) && !line.starts_with("Threads:")) {
  }
  return std::stoi(line.substr(line.find(':') + 1));
}

}  // namespace

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

TEST_CASE("ucx connect: ranks of another group are told apart by their token", "[ucx]") {
  const auto store = make_memory_store();
  const auto endings = run_each(2, [&](int rank) {
    const auto channel = connect({.rank = rank, .size = 2, .store = store, .token = kToken + unsigned(rank)}, 5s);
    meet_all(*channel, rank, 2, 1);
  });
  INFO(show(endings));
  CHECK(std::any_of(endings.begin(), endings.end(),
                    [](const Ending& ending) { return ending.code == ErrorCode::mismatch; }));
  for (const Ending& ending : endings) CHECK(ending.code.has_value());
}

TEST_CASE("ucx connect: a rank that never shows up is a timeout that names it on all ranks", "[ucx]") {
  const auto store = make_memory_store();
  const auto endings = run_each(2, [&](int rank) { connect({.rank = rank, .size = 3, .store = store}, 3s); });
  INFO(show(endings));
  for (const Ending& ending : endings) {
    CHECK(ending.code == ErrorCode::timeout);
    CHECK(ending.rank == 2);
  }
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

TEST_CASE("ucx connect: nothing is left in the store, no descriptor and no thread", "[ucx]") {
  const auto run = [](const std::shared_ptr<Store>& store) {
    return run_each(4, [&](int rank) {
      const auto channel = connect({.rank = rank, .size = 4, .store = store});
      meet_all(*channel, rank, 4, 1);
    });
  };
  require_well(run(make_memory_store()));  // what the process keeps for the next group is there after the first
  const auto descriptors = own_descriptors();
  const int threads = threads_now();
  const auto store = make_memory_store();
  require_well(run(store));
  CHECK(store->num_keys() == 0);
  CHECK(own_descriptors() == descriptors);
  CHECK(soon([&] { return threads_now() <= threads; }));  // one that was joined may still be on its way out
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

TEST_CASE("ucx: two groups of the same ranks work at once from two threads", "[ucx]") {
  constexpr int kSize = 3;
  const std::shared_ptr<Store> stores[] = {make_memory_store(), make_memory_store()};
  require_well(run_each(2 * kSize, [&](int i) {
    const int group = i / kSize;
    const auto channel = connect(
        {.rank = i % kSize, .size = kSize, .store = stores[group], .token = kToken + static_cast<unsigned>(group)});
    for (std::uint64_t round = 1; round < 100; ++round) meet_all(*channel, i % kSize, kSize, round);
  }));
}

TEST_CASE("ucx: a channel inherited by fork() refuses calls and can be destroyed", "[ucx]") {
  const TempDir dir;
  const auto body = [&](int rank) {
    auto channel = connect({.rank = rank, .size = 2, .store = make_file_store(dir.path())});
    meet_all(*channel, rank, 2, 1);
    RankProcess child([&] {
      std::vector<float> data(1);
      const Ending ending = ending_of([&] { channel->post_recv(1 - rank, 2, data); });
      expect(ending.code == ErrorCode::not_initialized, ending.text);
      expect(ending.says("fork"), ending.text);
      channel.reset();
    });
    const Ending ending = child.wait();
    expect(!ending.code.has_value(), ending.text);
    meet_all(*channel, rank, 2, 3);  // the parent's connections are as they were
  };
  RankProcess first([&] { body(0); }), second([&] { body(1); });
  CHECK(first.wait().text == "");
  CHECK(second.wait().text == "");
}

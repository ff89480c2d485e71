// Groups of ranks that another group connects: their addresses are known, and no store is needed.
#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "support/catch.hpp"
#include "support/counting_store.hpp"
#include "support/temp_dir.hpp"
#include "unit/gloo/mesh.hpp"

namespace {

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;
using backend::Draft;

constexpr std::uint64_t kNewToken = kToken + 1;

ConnectRequest request_of(int rank, int size, std::shared_ptr<Store> store = nullptr) {
  ConnectRequest request;
  request.group = "new";
  request.rank = rank;
  request.size = size;
  request.store = std::move(store);
  request.token = kNewToken;
  return request;
}

// This rank's draft of a group of `ranks` of the old group.
std::unique_ptr<Draft> draft_of(GlooChannel& old, const std::vector<int>& ranks, int rank) {
  return old.draft(request_of(rank, static_cast<int>(ranks.size())), ranks);
}

std::unique_ptr<Channel> finish(Draft& draft, int rank, int size, const std::shared_ptr<Store>& store,
                                Duration timeout = 20s) {
  WaitContext wait = wait_for(timeout);
  return draft.connect(request_of(rank, size, store), wait);
}

// The words of all ranks of the new group, as the old one would tell them: through a store.
std::vector<std::string> exchanged(Store& store, const std::string& words, int rank, int size) {
  store.set(fmt::format("words/{}", rank), words);
  std::vector<std::string> all;
  for (int other = 0; other < size; ++other) all.push_back(store.wait_for(fmt::format("words/{}", other), 20s));
  return all;
}

std::vector<int> first_ranks(int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

TEST_CASE("gloo draft: ranks in any order, on any hosts, form without the store, and outlive the old group", "[gloo]") {
  const auto store = make_memory_store();
  const std::vector<int> hosts{0, 1, 0, 1, 2, 2, 0, 1, 1}, ranks{7, 0, 8, 2, 4, 1, 3, 5};  // without 6
  require_well(run_each(9, [&](int own) {
    auto old = connect({.rank = own, .size = 9, .store = store, .hosts = hosts});
    const auto place = std::find(ranks.begin(), ranks.end(), own);
    if (place == ranks.end()) return void(store->wait_for("done", 20s));
    const auto rank = static_cast<int>(place - ranks.begin());
    const auto draft = draft_of(*old, ranks, rank);
    draft->hear(exchanged(*store, draft->words(), rank, 8));
    if (rank % 2 == 0) old.reset();
    const auto counted = std::make_shared<CountingStore>(store);
    const auto channel = finish(*draft, rank, 8, counted);
    // A rank that waits for long looks whether another one has failed, which is a get.
    expect(counted->rounds() == counted->gets(), "no store");
    for (std::uint64_t round = 0; round < 3; ++round) {
      std::vector<float> data(10, static_cast<float>(rank));
      Request request = request_for(Collective::allreduce, round, 10);
      request.in = data;
      request.out = data;
      run_native(*channel, request);
      expect(data[9] == 28, "the sum");
    }
    if (store->add("ended", 1) == 8) store->set("done", "");
  }));
}

TEST_CASE("gloo draft: one may leave at once, while others still connect", "[gloo]") {
  constexpr int kSize = 9;
  for (int round = 0; round < 20; ++round) {
    const auto store = make_memory_store();
    require_well(run_each(kSize, [&](int rank) {
      const auto old = connect({.rank = rank, .size = kSize, .store = store});
      const auto draft = draft_of(*old, first_ranks(kSize), rank);
      draft->hear(exchanged(*store, draft->words(), rank, kSize));
      finish(*draft, rank, kSize, store).reset();
      await_all(*store, "ended", kSize);  // nobody leaves the old group early
    }));
  }
}

TEST_CASE("gloo draft: a rank that dies after it was heard is named by all that wait for it, within a second",
          "[gloo]") {
  constexpr int kSize = 8, kDead = 5;
  const TempDir dir;
  std::vector<RankProcess> processes;
  for (int rank = 0; rank < kSize; ++rank) {
    processes.emplace_back([&dir, rank] {
      const auto store = make_file_store(dir.path());
      const auto old = connect({.rank = rank, .size = kSize, .store = store});
      const auto draft = draft_of(*old, first_ranks(kSize), rank);
      draft->hear(exchanged(*store, draft->words(), rank, kSize));
      await_all(*store, "heard", kSize);
      if (rank == kDead) ::raise(SIGKILL);
      const auto channel = finish(*draft, rank, kSize, make_prefix_store(store, "mesh"), kDeadline);
      std::vector<int> data(1);
      wait_for(*channel, channel->post_recv(kDead, 1, data));
    });
  }
  for (int rank = 0; rank < kSize; ++rank) {
    const Ending ending = processes[static_cast<std::size_t>(rank)].wait();
    INFO("rank " << rank << ": " << ending.text);
    if (rank == kDead) {
      CHECK(ending.text == fmt::format("signal {}", SIGKILL));
      continue;
    }
    CHECK(ending.code == ErrorCode::peer_lost);
    CHECK(ending.rank == kDead);
    CHECK(ending.seconds < kPromptSeconds);
  }
}

// Ranks 5 and 6 are held back, so that their parent, 1, still connects while rank 0 is done, and breaks what it has.
TEST_CASE("gloo draft: a rank that is done may fail, or die, while others still connect, who do not mind", "[gloo]") {
  constexpr int kSize = 7;
  for (const bool dies : {false, true}) {
    const TempDir dir;
    std::vector<RankProcess> processes;
    for (int rank = 0; rank < kSize; ++rank) {
      processes.emplace_back([&dir, rank, dies] {
        const auto store = make_file_store(dir.path());
        const auto old = connect({.rank = rank, .size = kSize, .store = store});
        const auto draft = draft_of(*old, first_ranks(kSize), rank);
        draft->hear(exchanged(*store, draft->words(), rank, kSize));
        await_all(*store, "heard", kSize);
        if (rank > 4) store->wait_for("1 has looked", 20s);
        int looks = 0, looks_before = 0;
        WaitContext wait = wait_for(20s);
        if (rank == 1)
          wait.meanwhile([&] {
            // A turn at the connections lies between two of these looks.
            if (store->get("0 is done") && ++looks_before == 3) store->set("1 has heard", "");
            if (store->get("0 has failed") && ++looks == 3) store->set("1 has looked", "");
          });
        const auto channel = draft->connect(request_of(rank, kSize, make_prefix_store(store, "mesh")), wait);
        if (rank == 0) {
          // Who has not read yet what rank 0 said last does mind.
          store->set("0 is done", "");
          for (const char* other : {"1 has heard", "2 is done", "3 is done", "4 is done"}) store->wait_for(other, 20s);
          if (!dies) channel->abort(Error(ErrorCode::mismatch, "its first call differs"));
          store->set("0 has failed", "");
          if (dies) ::raise(SIGKILL);
        }
        if (rank != 1) store->set(fmt::format("{} is done", rank), "");
        if (rank != 1) return void(store->wait_for("1 is done", 20s));
        const Ending ending = ending_of([&] {
          std::vector<int> data(1);
          wait_for(*channel, channel->post_recv(0, 1, data), kDeadline);
        });
        store->set("1 is done", "");
        expect(looks >= 3, "it has connected before");
        expect(ending.code == ErrorCode::peer_lost && ending.rank == 0, "later: " + ending.text);
      });
    }
    for (int rank = 0; rank < kSize; ++rank) {
      const Ending ending = processes[static_cast<std::size_t>(rank)].wait();
      INFO("dies: " << dies << ", rank " << rank << ": " << ending.text);
      if (dies && rank == 0)
        CHECK(ending.text == fmt::format("signal {}", SIGKILL));
      else
        CHECK(!ending.code);
    }
  }
}

TEST_CASE("gloo draft: a rank that gives up while it connects ends the others at once, with its cause", "[gloo]") {
  constexpr int kSize = 8;
  const auto store = make_memory_store();
  const auto endings = run_each(kSize, [&](int rank) {
    const auto old = connect({.rank = rank, .size = kSize, .store = store});
    auto draft = draft_of(*old, first_ranks(kSize), rank);
    draft->hear(exchanged(*store, draft->words(), rank, kSize));
    const Ending ending = ending_of([&] {
      if (rank == 7) draft.reset();  // never calls its parent, and says nothing
      if (rank != 7) finish(*draft, rank, kSize, store, rank == 1 ? 3s : 10s);
    });
    await_all(*store, "ended", kSize);
    if (rank == 7 || !ending.code) return;
    throw Error(*ending.code, ending.text, "new", ending.rank);
  });
  INFO(show(endings));
  // 7 is a child of 1, which gives up: its own parent and children are connected, and see it go.
  CHECK(endings[1].code == ErrorCode::timeout);
  CHECK(endings[1].rank == 7);
}

TEST_CASE("gloo draft: who is not of the group is not let in", "[gloo]") {
  const auto store = make_memory_store();
  const auto endings = run_each(2, [&](int rank) {
    const auto old = connect({.rank = rank, .size = 2, .store = store});
    ConnectRequest request = request_of(rank, 2);
    request.token += static_cast<unsigned>(rank);
    const std::array ranks{0, 1};
    const auto draft = old->draft(request, ranks);
    draft->hear(exchanged(*store, draft->words(), rank, 2));
    finish(*draft, rank, 2, store, 3s);
  });
  INFO(show(endings));
  CHECK(endings[1].code == ErrorCode::mismatch);
  CHECK(endings[0].code.has_value());
}

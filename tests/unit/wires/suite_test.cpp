// What is promised of every wire between hosts, for each of them: ranks come together or say why not, and whatever goes
// wrong ends every wait on time, with an error that says who. COL_TEST_WIRE is the header of the wire's ranks.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include COL_TEST_WIRE
#include "support/catch.hpp"
#include "support/soon.hpp"
#include "support/temp_dir.hpp"

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

TEST_CASE(COL_WIRE " connect: ranks of another group are told apart by their token", "[" COL_WIRE "]") {
  const auto store = make_memory_store();
  const auto endings = run_each(2, [&](int rank) {
    const auto channel = connect({.rank = rank, .size = 2, .store = store, .token = kToken + unsigned(rank)}, 5s);
    meet_all(*channel, rank, 2, 1);
  });
  INFO(show(endings));
  const auto mismatches = std::count_if(endings.begin(), endings.end(),
                                        [](const Ending& ending) { return ending.code == ErrorCode::mismatch; });
  CHECK(mismatches >= kSidesThatFindAnotherToken);
  for (const Ending& ending : endings) CHECK(ending.code.has_value());
}

TEST_CASE(COL_WIRE " connect: a rank that never shows up is a timeout that names it, on time, on all ranks",
          "[" COL_WIRE "]") {
  // Time for both to come, so that neither is the one that is missing.
  const auto store = make_memory_store();
  const auto endings = run_each(2, [&](int rank) { connect({.rank = rank, .size = 3, .store = store}, 3s); });
  INFO(show(endings));
  for (const Ending& ending : endings) {
    CHECK(ending.code == ErrorCode::timeout);
    CHECK(ending.rank == 2);
    CHECK(ending.says("rank 2"));
    CHECK(ending.seconds < kPromptSeconds);
  }
}

TEST_CASE(COL_WIRE " connect: nothing is left in the store, no descriptor and no thread", "[" COL_WIRE "]") {
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

TEST_CASE(COL_WIRE ": two groups of the same ranks work at once from two threads", "[" COL_WIRE "]") {
  constexpr int kSize = 3;
  const std::shared_ptr<Store> stores[] = {make_memory_store(), make_memory_store()};
  require_well(run_each(2 * kSize, [&](int i) {
    const int group = i / kSize;
    const auto channel = connect(
        {.rank = i % kSize, .size = kSize, .store = stores[group], .token = kToken + static_cast<unsigned>(group)});
    for (std::uint64_t round = 1; round < 100; ++round) meet_all(*channel, i % kSize, kSize, round, 100 * group);
  }));
}

TEST_CASE(COL_WIRE ": a channel inherited by fork() refuses calls and can be destroyed", "[" COL_WIRE "]") {
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

TEST_CASE(COL_WIRE ": a rank that does not send is a timeout that names it, on time, and breaks the channel",
          "[" COL_WIRE "]") {
  require_well(run_ranks(2, [](int rank, WireChannel& channel) {
    std::vector<float> data(1);
    const Ending first = ending_of([&] { wait_for(channel, channel.post_recv(1 - rank, 1, data), 300ms); });
    if (first.code == ErrorCode::peer_lost) return;  // the other's timeout was first
    expect(first.code == ErrorCode::timeout, first.text);
    expect(first.says(fmt::format("rank {}", 1 - rank)), first.text);
    expect(first.seconds >= 0.29 && first.seconds < kPromptSeconds, fmt::format("{} s", first.seconds));
    const Ending later = ending_of([&] { channel.post_recv(1 - rank, 2, data); });
    expect(later.code == ErrorCode::aborted && later.says("time"), "names the first cause: " + later.text);
    expect(later.seconds < kPromptSeconds, "at once");
  }));
}

TEST_CASE(COL_WIRE ": abort from another thread wakes the waiter, and the peers, within a second", "[" COL_WIRE "]") {
  for (const bool have_met : {false, true}) {
    require_well(run_ranks(2, [&](int rank, WireChannel& channel) {
      if (have_met) meet_all(channel, rank, 2, 7);
      std::vector<float> data(1);
      const Ticket ticket = channel.post_recv(1 - rank, 1, data);
      if (rank == 1) {
        const Ending ending = ending_of([&] { wait_for(channel, ticket); });
        expect(ending.code == ErrorCode::peer_lost && ending.rank == 0, ending.text);
        return;
      }
      const Ending ending = ending_when_aborted(channel, [&](WaitContext& wait) { channel.wait(ticket, wait); });
      expect(ending.code == ErrorCode::aborted && ending.says("the test says stop"), ending.text);
      expect(ending.seconds < kPromptSeconds, fmt::format("{} s", ending.seconds));
    }));
  }
}

TEST_CASE(COL_WIRE ": the job's abort cause ends a wait and is what it throws", "[" COL_WIRE "]") {
  const auto page = ControlPage::in_memory(2);
  page->abort({ErrorCode::peer_lost, 7, "rank 7 fell over"});
  const auto store = make_memory_store();
  require_well(run_ranks(2, [&](int rank, WireChannel& channel) {
    std::vector<float> data(1);
    WaitContext wait(Deadline::after(20s), page.get());
    const Ticket ticket = channel.post_recv(1 - rank, 1, data);
    await_all(*store, "posted", 2);  // who is told breaks the channel
    const Ending ending = ending_of([&] { channel.wait(ticket, wait); });
    await_all(*store, "told", 2);
    expect(ending.code == ErrorCode::peer_lost && ending.says("rank 7 fell over"), ending.text);
    expect(ending.seconds < kPromptSeconds, "promptly");
  }));
}

TEST_CASE(COL_WIRE ": when one of four processes is killed while all talk, the others fail within a second",
          "[" COL_WIRE "]") {
  constexpr int kSize = 4, kVictim = 2;
  const TempDir dir;
  const auto store = make_file_store(dir.path());
  std::vector<RankProcess> ranks;
  for (int rank = 0; rank < kSize; ++rank) {
    ranks.emplace_back([&, rank] {
      const auto own_store = make_file_store(dir.path());
      const auto channel = connect({.rank = rank, .size = kSize, .store = make_prefix_store(own_store, "connect")});
      const Ending ending = ending_of([&] {
        for (std::uint64_t round = 1;; ++round) {
          work_together(*channel, rank, kSize, round);
          if (round == 10) own_store->set(fmt::format("looping/{}", rank), "yes");
        }
      });
      expect(ending.code == ErrorCode::peer_lost, ending.text);
      own_store->set(fmt::format("failed/{}", rank), std::to_string(ending.rank));
      // Nobody exits yet: it must be the broken channels that tell the ranks which do not talk to the victim.
      own_store->wait_for("enough", 20s);
    });
  }
  for (int rank = 0; rank < kSize; ++rank) store->wait_for(fmt::format("looping/{}", rank), 20s);
  ranks[kVictim].kill();
  bool named = false;
  for (int rank = 0; rank < kSize; ++rank) {
    if (rank == kVictim) continue;
    INFO("rank " << rank);
    const std::string blamed = store->wait_for(fmt::format("failed/{}", rank), kPrompt);
    named = named || blamed == std::to_string(kVictim);
  }
  CHECK(named);
  store->set("enough", "yes");
  for (int rank = 0; rank < kSize; ++rank) {
    if (rank != kVictim) CHECK(ranks[static_cast<std::size_t>(rank)].wait().text == "");
  }
}

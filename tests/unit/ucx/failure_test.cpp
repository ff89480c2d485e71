// What goes wrong while a group works: every wait ends, on time, with an error that says who.
#include <atomic>
#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <sys/wait.h>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"
#include "unit/ucx/ucx_ranks.hpp"

namespace {

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;

double since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

TEST_CASE("ucx: a rank that does not send is a timeout that names it, on time, and breaks the channel", "[ucx]") {
  require_well(run_ranks(2, [](int rank, UcxChannel& channel) {
    std::vector<float> data(1);
    const Ending first = ending_of([&] { wait_for(channel, channel.post_recv(1 - rank, 1, data), 300ms); });
    if (first.code == ErrorCode::peer_lost) return;  // the other's timeout was first
    expect(first.code == ErrorCode::timeout, first.text);
    expect(first.says(fmt::format("data from rank {}", 1 - rank)), first.text);
    expect(first.seconds >= 0.29 && first.seconds < kPromptSeconds, fmt::format("{} s", first.seconds));
    const Ending later = ending_of([&] { channel.post_recv(1 - rank, 2, data); });
    expect(later.code == ErrorCode::aborted && later.says("timed out"), later.text);
    expect(later.seconds < kPromptSeconds, "at once");
  }));
}

TEST_CASE("ucx: abort from another thread wakes the waiter, and the peers, within a second", "[ucx]") {
  for (const bool have_met : {false, true}) {
    require_well(run_ranks(2, [&](int rank, UcxChannel& channel) {
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

TEST_CASE("ucx: the job's abort cause ends a wait and is what it throws", "[ucx]") {
  const auto page = ControlPage::in_memory(2);
  page->abort({ErrorCode::peer_lost, 7, "rank 7 fell over"});
  require_well(run_ranks(2, [&](int rank, UcxChannel& channel) {
    std::vector<float> data(1);
    WaitContext wait(Deadline::after(20s), page.get());
    const Ending ending = ending_of([&] { channel.wait(channel.post_recv(1 - rank, 1, data), wait); });
    expect(ending.code == ErrorCode::peer_lost, ending.text);
    expect(ending.seconds < kPromptSeconds, "promptly");
  }));
}

TEST_CASE("ucx: when one of four processes is killed while all talk, the others fail within a second", "[ucx]") {
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
          meet_all(*channel, rank, kSize, round);
          if (round == 10) own_store->set(fmt::format("looping/{}", rank), "yes");
        }
      });
      expect(ending.code == ErrorCode::peer_lost, ending.text);
      own_store->set(fmt::format("failed/{}", rank), std::to_string(ending.rank));
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

// A receive that is posted, has its message announced, or is under way, and a send: each ends when the peer dies.
TEST_CASE("ucx: what waits for a rank, in whatever state, ends when the rank dies", "[ucx]") {
  enum class State { posted, any, large_send, large_receive };
  for (const State state : {State::posted, State::any, State::large_send, State::large_receive}) {
    INFO("state " << static_cast<int>(state));
    const TempDir dir;
    const auto store = make_file_store(dir.path());
    RankProcess victim([&] {
      const auto channel = connect({.rank = 1, .size = 2, .store = make_file_store(dir.path())});
      meet_all(*channel, 1, 2, 1);
      std::vector<float> data(16'000'000);
      if (state == State::large_send) channel->post_recv(0, 2, data);
      if (state == State::large_receive) channel->post_send(0, 2, data);
      raise(SIGSTOP);
    });
    RankProcess survivor([&] {
      const auto own_store = make_file_store(dir.path());
      const auto channel = connect({.rank = 0, .size = 2, .store = own_store});
      meet_all(*channel, 0, 2, 1);
      own_store->wait_for("stopped", 20s);
      std::vector<float> data(16'000'000);
      const Ticket ticket = state == State::large_send
                                ? channel->post_send(1, 2, data)
                                : channel->post_recv(state == State::any ? kAnyPeer : 1, 2, data);
      own_store->set("waiting", "yes");
      wait_for(*channel, ticket);
    });
    int status = 0;
    REQUIRE(waitpid(victim.pid(), &status, WUNTRACED) == victim.pid());
    REQUIRE(WIFSTOPPED(status));
    store->set("stopped", "yes");
    store->wait_for("waiting", 20s);
    const auto start = std::chrono::steady_clock::now();
    victim.kill();
    const Ending ending = survivor.wait();
    INFO(ending.text);
    CHECK(ending.code == ErrorCode::peer_lost);
    CHECK(ending.rank == 1);
    CHECK(since(start) < kPromptSeconds);
  }
}

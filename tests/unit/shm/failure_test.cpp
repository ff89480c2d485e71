// What goes wrong while a group works: every wait ends, on time, with an error that says who.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "backend/shm/segment/doorbell.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"
#include "unit/shm/shm_ranks.hpp"

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;
using Data = std::vector<std::int32_t>;

TEST_CASE("shm: a rank that does not send is a timeout that names it, on time; then all calls say so", "[shm]") {
  require_well(run_ranks(2, [](int rank, ShmChannel& channel) {
    Data data(10);
    if (rank == 1) {  // is told that rank 0 gave up, and stays until then
      const Ending ending = ending_of([&] { recv(channel, 0, 1, data); });
      expect(ending.code == ErrorCode::aborted && ending.rank == 0, ending.text);
      expect(ending.says("timed out"), "why it was ended: " + ending.text);
      expect(ending.seconds < kPromptSeconds, "at once");
      return;
    }
    const Ending ending = ending_of([&] { wait_for(channel, channel.post_recv(1, 2, data), 300ms); });
    expect(ending.code == ErrorCode::timeout, ending.text);
    expect(ending.says("rank 1"), ending.text);
    expect(ending.seconds >= 0.3 && ending.seconds < kPromptSeconds, fmt::format("{} s", ending.seconds));
    const Ending later = ending_of([&] { send(channel, 1, 3, data); });
    expect(later.code == ErrorCode::aborted && later.seconds < kPromptSeconds, later.text);
    expect(later.says("timed out"), "names the first cause: " + later.text);
  }));
}

TEST_CASE("shm: abort from another thread wakes the waiter, and the peers, with the first cause", "[shm]") {
  require_well(run_ranks(3, [](int rank, ShmChannel& channel) {
    Data data(1);
    const Ticket ticket = channel.post_recv((rank + 1) % 3, 1, data);
    if (rank != 0) {
      const Ending ending = ending_of([&] { wait_for(channel, ticket); });
      expect(ending.code == ErrorCode::aborted && ending.rank == 0, ending.text);
      expect(ending.says("rank 0") && ending.says("says stop"), ending.text);
      return;
    }
    const Ending ending = ending_when_aborted(channel, [&](WaitContext& wait) { channel.wait(ticket, wait); });
    expect(ending.code == ErrorCode::aborted && ending.says("the test says stop"), ending.text);
    expect(ending.seconds < kPromptSeconds, fmt::format("{} s", ending.seconds));
  }));
}

TEST_CASE("shm: a lost peer stays a lost peer on all ranks, and is named", "[shm]") {
  require_well(run_ranks(3, [](int rank, ShmChannel& channel) {
    if (rank == 0) return channel.abort(Error(ErrorCode::peer_lost, "rank 2 fell over", "g", 2));
    Data data(1);
    const Ending ending = ending_of([&] { recv(channel, 3 - rank, 1, data); });
    expect(ending.code == ErrorCode::peer_lost && ending.rank == 2, ending.text);
  }));
}

TEST_CASE("shm: the job's abort cause ends a wait and is what it throws", "[shm]") {
  const auto page = ControlPage::in_memory(2);
  page->abort({ErrorCode::peer_lost, 7, "rank 7 fell over"});
  require_well(run_ranks(2, [&](int rank, ShmChannel& channel) {
    Data data(1);
    WaitContext wait(Deadline::after(20s), page.get());
    const Ending ending = ending_of([&] { channel.wait(channel.post_recv(1 - rank, 1, data), wait); });
    expect(ending.code == ErrorCode::peer_lost && ending.says("rank 7 fell over"), ending.text);
    expect(ending.seconds < kPromptSeconds, "promptly");
  }));
}

TEST_CASE("shm: whoever waits for a rank that has left is told at once", "[shm]") {
  for (const bool sending : {false, true}) {
    require_well(run_ranks(3, [sending](int rank, ShmChannel& channel) {
      if (rank == 1) return;
      Data data(100'000);
      if (rank == 2) {  // from anybody: rank 0 tells the reason, when both have gone
        const Ending ending = ending_of([&] { recv(channel, kAnyPeer, 1, data); });
        expect(ending.code == ErrorCode::peer_lost && ending.rank == 1, ending.text);
        return;
      }
      const Ending ending = ending_of([&] {
        if (sending) {
          send(channel, 1, 1, data);
        } else {
          recv(channel, 1, 1, data);
        }
      });
      expect(ending.code == ErrorCode::peer_lost && ending.rank == 1, ending.text);
      expect(ending.seconds < kPromptSeconds, "promptly");
    }));
  }
}

TEST_CASE("shm: a message that is not the next receive's is a mismatch at once, though its sender has left", "[shm]") {
  constexpr std::uint64_t kStream = 7ULL << 32;
  for (const std::size_t count : {std::size_t{10}, std::size_t{11}, std::size_t{50'000}}) {
    for (const bool receive_first : {false, true}) {
      const auto store = make_memory_store();
      require_well(run_ranks(2, [&](int rank, ShmChannel& channel) {
        Data data(rank == 0 ? count : 10, rank), nothing;
        const std::uint64_t slot = kStream | static_cast<std::uint64_t>(rank);
        if (rank == 0) {
          if (receive_first) store->wait_for("posted", 20s);
          const Ticket ticket = channel.post_send(1, slot, data);
          store->set("sent", "yes");
          // A small one has been sent, and this rank leaves; of a large one it learns what became of it.
          const Ending ending = ending_of([&] { wait_for(channel, ticket); });
          expect(ending.code == (count > 1000 ? std::optional(ErrorCode::aborted) : std::nullopt), ending.text);
          return;
        }
        const Ending ending = ending_of([&] {
          if (!receive_first) store->wait_for("sent", 20s);
          const Ticket ticket = channel.post_recv(receive_first ? 0 : kAnyPeer, slot, data);
          store->set("posted", "yes");
          wait_for(channel, ticket);
        });
        expect(ending.code == ErrorCode::mismatch && ending.seconds < kPromptSeconds, ending.text);
        expect(ending.says("rank 0"), ending.text);
        expect(data == Data(10, 1), "nothing was written");
      }));
    }
  }
}

TEST_CASE("shm: a process that was forked off is no member, and ends without a word to the others", "[shm]") {
  const TempDir dir;
  std::vector<RankProcess> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      auto channel = connect({.rank = rank, .size = 2, .store = make_file_store(dir.path())});
      Data data = {rank};
      const pid_t child = fork();
      if (child == 0) {
        const Ending ending = ending_of([&] { channel->post_send(1 - rank, 1, data); });
        channel->abort(Error(ErrorCode::aborted, "a child's"));
        channel.reset();
        std::_Exit(ending.code == ErrorCode::not_initialized ? 0 : 1);
      }
      int status = -1;
      waitpid(child, &status, 0);
      expect(status == 0, "the child was refused");
      const Ticket ticket = channel->post_send(1 - rank, 2, data);
      Data in(1, -1);
      recv(*channel, 1 - rank, 2, in);
      wait_for(*channel, ticket);
      expect(in[0] == 1 - rank, "content");
    });
  }
  for (auto& rank : ranks) CHECK(rank.wait().text == "");
}

TEST_CASE("shm: killed processes leave nothing behind, and waits for them end as the WaitContext says", "[shm]") {
  const TempDir dir, shared;
  const auto store = make_file_store(dir.path());
  std::vector<RankProcess> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([&, rank] {
      const auto own_store = make_file_store(dir.path());
      const auto channel = connect({.rank = rank,
                                    .size = 3,
                                    .store = make_prefix_store(own_store, "connect"),
                                    .places = {.files = shared.path()}});  // others make files in /dev/shm
      Data out(50'000, rank), in(50'000);
      const Ending ending = ending_of([&] {
        for (std::uint64_t round = 0;; ++round) {
          const Ticket ticket = channel->post_send((rank + 1) % 3, round, out);
          wait_for(*channel, channel->post_recv((rank + 2) % 3, round, in), 2s);
          wait_for(*channel, ticket, 2s);
          if (round == 10) own_store->set(fmt::format("looping/{}", rank), "yes");
        }
      });
      expect(ending.code == ErrorCode::timeout || ending.code == ErrorCode::aborted, ending.text);
    });
  }
  for (int rank = 0; rank < 3; ++rank) store->wait_for(fmt::format("looping/{}", rank), 20s);
  ranks[0].kill();  // it made the memory
  CHECK(leftovers(shared.path()).empty());
  CHECK(ranks[0].wait().text == "signal 9");
  CHECK(ranks[1].wait().text == "");
  CHECK(ranks[2].wait().text == "");
  CHECK(leftovers(shared.path()).empty());
}

TEST_CASE("shm: a collective that it has not of its own is refused", "[shm]") {
  require_well(run_ranks(2, [](int, ShmChannel& channel) {
    Request request;
    request.collective = Collective::send;
    const Ending ending = ending_of([&] { run_native(channel, request, 1s); });
    expect(ending.code == ErrorCode::internal || ending.code == ErrorCode::aborted, ending.text);
  }));
}

TEST_CASE("shm: a rank that sleeps hears of news at once, not at the end of its slice", "[shm]") {
  const auto page = ControlPage::in_memory(1);
  WaitContext wait(Deadline::after(20s), page.get());
  std::atomic<std::uint32_t> word{0};
  shm_backend::Doorbell doorbell(word);
  for (int way = 0; way < 2; ++way) {
    wait.check();
    std::thread launcher([&] {
      while (word == 0) std::this_thread::yield();  // until it is armed
      page->ring();
    });
    if (way == 0)
      doorbell.sleep_unless([] { return false; }, 24h, wait);
    else
      doorbell.sleep_at_once_unless([] { return false; }, 24h, wait);
    launcher.join();
    CHECK(word == 0);
    CHECK(wait.news().seen != page->news());
  }
}

TEST_CASE("shm: what a rank sent before it ended is received, though its end is heard of first", "[shm]") {
  class HearsOfEnd final : public WaitObserver {
   public:
    explicit HearsOfEnd(std::function<void()> before) : before_(std::move(before)) {}
    bool on_slow(Duration /*waited*/) override { return false; }
    void on_news(std::uint32_t /*news*/) override {
      before_();
      throw Error(ErrorCode::peer_lost, "rank 1 has ended", "g", 1);
    }
    void on_timeout(Duration /*budget*/) override {}

   private:
    std::function<void()> before_;
  };
  for (const bool has_sent : {true, false}) {
    const auto store = make_memory_store();
    const auto page = ControlPage::in_memory(1);
    page->ring();
    require_well(run_ranks(2, [&](int rank, ShmChannel& channel) {
      Data data(10, rank);
      if (rank == 1) {
        store->wait_for("looks", 20s);  // for the last time before it hears of the end
        if (has_sent) send(channel, 0, 1, data);
        store->set("ended", "");
        store->wait_for("done", 20s);
        return;
      }
      HearsOfEnd observer([&] {
        store->set("looks", "");
        store->wait_for("ended", 20s);
      });
      WaitContext wait(Deadline::after(20s), page.get(), nullptr, &observer);
      const Ending ending = ending_of([&] { channel.wait(channel.post_recv(1, 1, data), wait); });
      store->set("done", "");
      expect(ending.code == (has_sent ? std::nullopt : std::optional(ErrorCode::peer_lost)), ending.text);
      expect(data == Data(10, has_sent ? 1 : 0), "content");
    }));
  }
}

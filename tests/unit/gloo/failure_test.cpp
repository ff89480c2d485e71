// What goes wrong while a group works: every wait ends, on time, with an error that says who.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"
#include "unit/gloo/mesh.hpp"

namespace {

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;

void sum_over_ranks(GlooChannel& channel, std::uint64_t sequence, std::vector<float>& data, Duration timeout = 20s) {
  Request request = request_for(Collective::allreduce, sequence, data.size());
  request.in = data;
  request.out = data;
  run_native(channel, request, timeout);
}

// Ends one direction of every TCP connection of this process: what a peer that closed looks like to a writer.
void stop_writing_on_all_sockets() {
  for (int fd = 3; fd < 256; ++fd) ::shutdown(fd, SHUT_WR);
}

bool sigpipe_is_pending() {
  sigset_t pending;
  sigemptyset(&pending);
  sigpending(&pending);
  return sigismember(&pending, SIGPIPE) == 1;
}

}  // namespace

TEST_CASE("gloo: writing to a closed connection is an error, not a SIGPIPE", "[gloo]") {
  const TempDir dir;
  RankProcess reader([&] {
    const auto channel = connect({.rank = 1, .size = 2, .store = make_file_store(dir.path())});
    std::vector<float> data(100'000);
    wait_for(*channel, channel->post_recv(0, 1, data), kDeadline);
  });
  RankProcess writer([&] {
    const auto channel = connect({.rank = 0, .size = 2, .store = make_file_store(dir.path())});
    std::vector<float> data(100'000);
    // Stopped, the reader cannot answer by closing its side, upon which nothing would be written at all.
    ::kill(reader.pid(), SIGSTOP);
    stop_writing_on_all_sockets();
    const Ending ending = ending_of([&] {
      const Ticket ticket = channel->post_send(1, 1, data);
      ::kill(reader.pid(), SIGCONT);
      wait_for(*channel, ticket, kDeadline);
    });
    ::kill(reader.pid(), SIGCONT);
    expect(ending.code == ErrorCode::peer_lost && ending.rank == 1, ending.text);
    expect(!sigpipe_is_pending(), "the signal was taken back");
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    expect(sigismember(&mask, SIGPIPE) == 0, "the mask is as before");
  });
  CHECK(writer.wait().text == "");
  CHECK(reader.wait().code == ErrorCode::peer_lost);
}

TEST_CASE("gloo: a rank that does not come is a timeout that names it, on time", "[gloo]") {
  require_well(run_ranks(2, [](int rank, GlooChannel& channel) {
    if (rank == 1) {
      // Leaves when rank 0 has given up and closed its connections.
      std::vector<float> data(1);
      ending_of([&] { wait_for(channel, channel.post_recv(0, 1, data), kDeadline); });
      return;
    }
    std::vector<float> data(10);
    const Ending ending = ending_of([&] { sum_over_ranks(channel, 1, data, 300ms); });
    expect(ending.code == ErrorCode::timeout, ending.text);
    expect(ending.says("rank 1"), ending.text);
    expect(ending.seconds >= 0.3 && ending.seconds < kPromptSeconds, fmt::format("{} s", ending.seconds));

    const Ending later = ending_of([&] { barrier(channel, 2); });
    expect(later.code == ErrorCode::aborted, later.text);
    expect(later.says("timeout"), "names the first cause: " + later.text);
    expect(later.seconds < kPromptSeconds, "at once");
  }));
}

TEST_CASE("gloo: abort from another thread wakes the waiter, and the peers, within a second", "[gloo]") {
  require_well(run_ranks(2, [](int rank, GlooChannel& channel) {
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

TEST_CASE("gloo: the job's abort cause ends a wait and is what it throws", "[gloo]") {
  const auto page = ControlPage::in_memory(2);
  page->abort({ErrorCode::peer_lost, 7, "rank 7 fell over"});
  const auto store = make_memory_store();
  require_well(run_ranks(2, [&](int rank, GlooChannel& channel) {
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

TEST_CASE("gloo: when one of four processes is killed in a loop of allreduces, the others fail within a second",
          "[gloo]") {
  constexpr int kSize = 4, kVictim = 2;
  const TempDir dir;
  const auto store = make_file_store(dir.path());
  std::vector<RankProcess> ranks;
  for (int rank = 0; rank < kSize; ++rank) {
    ranks.emplace_back([&, rank] {
      const auto own_store = make_file_store(dir.path());
      const auto channel = connect({.rank = rank, .size = kSize, .store = make_prefix_store(own_store, "connect")});
      std::vector<float> data(20'000, 1.0F);
      const Ending ending = ending_of([&] {
        for (std::uint64_t round = 0;; ++round) {
          sum_over_ranks(*channel, round, data);
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

TEST_CASE("gloo: a large send in flight ends when its receiver dies", "[gloo]") {
  const TempDir dir;
  const auto store = make_file_store(dir.path());
  RankProcess receiver([&] {
    const auto channel = connect({.rank = 1, .size = 2, .store = make_file_store(dir.path())});
    std::vector<float> data(16'000'000);
    const Ticket ticket = channel->post_recv(0, 1, data);
    raise(SIGSTOP);  // its event thread too: the sender's socket fills up
    wait_for(*channel, ticket);
  });
  RankProcess sender([&] {
    const auto own_store = make_file_store(dir.path());
    const auto channel = connect({.rank = 0, .size = 2, .store = own_store});
    own_store->wait_for("stopped", 20s);
    const std::vector<float> data(16'000'000);
    const Ticket ticket = channel->post_send(1, 1, data);
    own_store->set("sending", "yes");
    wait_for(*channel, ticket);
  });
  int status = 0;
  REQUIRE(waitpid(receiver.pid(), &status, WUNTRACED) == receiver.pid());
  REQUIRE(WIFSTOPPED(status));
  store->set("stopped", "yes");
  store->wait_for("sending", 20s);
  receiver.kill();
  const Ending ending = sender.wait();
  INFO(ending.text);
  CHECK(ending.code == ErrorCode::peer_lost);
  CHECK(ending.rank == 1);
}

TEST_CASE("gloo: a message longer than the buffer posted for it is an error, not the end of the process", "[gloo]") {
  constexpr std::uint64_t kSharedSlot = 0x9000'0000'0000'0001ULL;  // by hand, as for Gloo's own
  require_well(run_ranks(2, [](int rank, GlooChannel& channel) {
    std::vector<std::byte> data(1000, std::byte{1});
    WaitContext wait = wait_for();
    const gloo_backend::GuardedContext::WaitScope scope(channel.transport(), &wait);
    const auto buffer = channel.transport().createUnboundBuffer(data.data(), data.size());
    if (rank == 0) {
      std::fill(data.begin(), data.end(), std::byte{2});
      ending_of([&] {
        buffer->send(1, kSharedSlot, 0, data.size());
        buffer->waitSend();
      });
      const Ending later = ending_of([&] { barrier(channel, 1); });
      expect(later.code == ErrorCode::peer_lost && later.rank == 1, later.text);
    } else {
      const Ending ending = ending_of([&] {
        buffer->recv(0, kSharedSlot, 0, 10);
        buffer->waitRecv();
      });
      expect(ending.code == ErrorCode::mismatch && ending.seconds < kPromptSeconds, "the wait fails: " + ending.text);
      for (const std::byte byte : data) expect(byte == std::byte{1}, "nothing was written");
      const Ending later = ending_of([&] { barrier(channel, 1); });
      expect(later.code == ErrorCode::mismatch && later.says("rank 0 sent 1000 bytes"), "told again: " + later.text);
    }
  }));
}

TEST_CASE("gloo: blocks of an alltoallv that two ranks disagree on are a mismatch", "[gloo]") {
  require_well(run_ranks(2, [](int rank, GlooChannel& channel) {
    // Rank 0 sends one element to rank 1, which expects two.
    const std::vector<std::size_t> in_counts = {1, 1};
    const std::vector<std::size_t> out_counts =
        rank == 0 ? std::vector<std::size_t>{1, 1} : std::vector<std::size_t>{2, 1};
    const std::vector<float> in(2, 1.0F);
    std::vector<float> out(rank == 0 ? 2 : 3, -1.0F);
    Request request = request_for(Collective::alltoallv, 1, 0);
    request.in = in;
    request.out = out;
    request.in_counts = in_counts;
    request.out_counts = out_counts;
    const Ending ending = ending_of([&] { run_native(channel, request); });
    const bool all_came = rank == 0;  // and what it sent was kept
    expect(all_came ? !ending.code || ending.code == ErrorCode::peer_lost : ending.code == ErrorCode::mismatch,
           ending.text);
  }));
}

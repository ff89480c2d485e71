// What goes wrong while a group works: what is Gloo's alone (for all wires: unit/wires).
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

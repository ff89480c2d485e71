// What goes wrong while a group works: what is UCX's alone (for all wires: unit/wires).
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

// The in-memory backend's unpleasant sides, on which other tests rely.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include <col/channel.hpp>

#include "support/catch.hpp"
#include "support/memory_channel.hpp"
#include "support/outcomes.hpp"

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;
using Data = std::vector<std::int32_t>;

namespace {

// Both ranks of a group, used by one thread in turn.
std::vector<std::unique_ptr<Channel>> connect_two(BackendFactory& factory) {
  std::vector<std::unique_ptr<Channel>> channels(2);
  const auto connect = [&](int rank) {
    ConnectRequest request;
    request.group = "g";
    request.rank = rank;
    request.size = 2;
    WaitContext wait(Deadline::after(20s));
    channels[static_cast<std::size_t>(rank)] = factory.connect(request, wait);
  };
  std::thread other(connect, 1);
  connect(0);
  other.join();
  return channels;
}

int finish(Channel& channel, Ticket ticket) {
  WaitContext wait(Deadline::after(20s));
  return channel.wait(ticket, wait);
}

// In which order twenty messages of slots of their own arrive.
std::vector<int> arrivals(const MemoryOptions& options) {
  const auto factory = make_memory_backend(options);
  const auto ranks = connect_two(*factory);
  std::vector<Ticket> open;
  Data data(20);
  for (std::uint64_t slot = 0; slot < data.size(); ++slot)
    open.push_back(ranks[1]->post_recv(0, slot << 32, TensorView(&data[slot], 1, DType::int32)));
  for (std::uint64_t slot = 0; slot < data.size(); ++slot) ranks[0]->post_send(1, slot << 32, Data{1});
  std::vector<int> order;
  const Deadline deadline = Deadline::after(20s);
  while (order.size() < open.size() && !deadline.expired()) {
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (open[i].id == 0 || !ranks[1]->test(open[i])) continue;
      order.push_back(static_cast<int>(i));
      open[i] = {};
    }
  }
  return order;
}

}  // namespace

TEST_CASE("memory backend: delayed messages overtake one another, none is lost", "[backend]") {
  const auto in_order = arrivals({});
  REQUIRE(in_order.size() == 20);
  CHECK(std::is_sorted(in_order.begin(), in_order.end()));
  // Twenty times in order by chance: one case in 20!.
  const auto late = arrivals({.longest_delay = 500ms, .seed = 7});
  REQUIRE(late.size() == 20);
  CHECK_FALSE(std::is_sorted(late.begin(), late.end()));
}

TEST_CASE("memory backend: a rendezvous send ends when it is received, any other at once", "[backend]") {
  for (const bool rendezvous : {true, false}) {
    const auto factory = make_memory_backend({.rendezvous = rendezvous});
    const auto ranks = connect_two(*factory);
    const Ticket send = ranks[0]->post_send(1, 1, Data{5});
    const auto done = ranks[0]->test(send);
    CHECK(done.has_value() == !rendezvous);
    Data in(1);
    CHECK(finish(*ranks[1], ranks[1]->post_recv(0, 1, in)) == 0);
    CHECK(in[0] == 5);
    if (rendezvous) CHECK(finish(*ranks[0], send) == 1);
  }
}

TEST_CASE("memory backend: a rank closes at the post that the test names, and its peer loses it", "[backend]") {
  const auto factory = make_memory_backend({.seed = 99, .closing = MemoryOptions::Closing{.rank = 1, .at_post = 2}});
  const auto ranks = connect_two(*factory);
  Data in(1);
  const Ticket first = ranks[0]->post_recv(1, 1, in), second = ranks[0]->post_recv(1, 2, in);
  ranks[1]->post_send(0, 1, Data{5});
  expect_error(ErrorCode::io, "seed 99", [&] { ranks[1]->post_send(0, 2, Data{6}); });
  CHECK(finish(*ranks[0], first) == 1);  // sent before
  const Error lost = expect_error(ErrorCode::peer_lost, "", [&] { finish(*ranks[0], second); });
  CHECK(lost.rank() == 1);
  expect_error(ErrorCode::aborted, "", [&] { ranks[0]->post_send(1, 3, Data{7}); });
}

TEST_CASE("memory backend: what a rank sent before it closed arrives, whenever the receiver looks", "[backend]") {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const auto factory = make_memory_backend({.longest_delay = 3us, .seed = seed, .rendezvous = false});
    auto ranks = connect_two(*factory);
    Data in(1);
    const Ticket receive = ranks[0]->post_recv(1, 1, in);
    ranks[1]->post_send(0, 1, Data{5});
    ranks[1].reset();
    REQUIRE_NOTHROW([&] {
      while (!ranks[0]->test(receive)) {
      }
    }());
    REQUIRE(in[0] == 5);
  }
}

// Point-to-point messages of the Gloo channel.
#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include "support/catch.hpp"
#include "unit/gloo/mesh.hpp"

namespace {

using namespace col;
using namespace col::test;

std::vector<std::int32_t> pattern(int from, int number, std::size_t count) {
  std::vector<std::int32_t> data(count);
  std::iota(data.begin(), data.end(), from * 1'000'000 + number * 1000);
  return data;
}

}  // namespace

TEST_CASE("gloo messages: many in flight, posted out of order, all arrive where they belong", "[gloo]") {
  constexpr int kMessages = 200;
  require_well(run_ranks(3, [](int rank, GlooChannel& channel) {
    std::vector<std::vector<std::int32_t>> sent, received;
    std::vector<Ticket> tickets;
    for (int peer = 0; peer < 3; ++peer) {
      if (peer == rank) continue;
      for (int m = 0; m < kMessages; ++m) {
        sent.push_back(pattern(rank, m, static_cast<std::size_t>(m * 7)));  // the first is empty
        tickets.push_back(channel.post_send(peer, static_cast<std::uint64_t>(m), sent.back()));
      }
    }
    std::vector<std::pair<int, int>> of;
    for (int m = kMessages; m-- > 0;) {
      for (int peer = 0; peer < 3; ++peer) {
        if (peer == rank) continue;
        received.emplace_back(static_cast<std::size_t>(m * 7), -1);
        of.emplace_back(peer, m);
        tickets.push_back(channel.post_recv(peer, static_cast<std::uint64_t>(m), received.back()));
      }
    }
    for (const Ticket ticket : tickets) wait_for(channel, ticket);
    for (std::size_t i = 0; i < received.size(); ++i) {
      expect(received[i] == pattern(of[i].first, of[i].second, received[i].size()), "message " + std::to_string(i));
    }
    barrier(channel, 1);
  }));
}

TEST_CASE("gloo messages: equal slots between two ranks pair in the order of posting", "[gloo]") {
  require_well(run_ranks(2, [](int rank, GlooChannel& channel) {
    std::vector<std::vector<std::int32_t>> data;
    std::vector<Ticket> tickets;
    for (int m = 0; m < 50; ++m) {
      data.push_back(rank == 0 ? pattern(0, m, 100) : std::vector<std::int32_t>(100));
    }
    for (auto& one : data) {
      tickets.push_back(rank == 0 ? channel.post_send(1, 9, one) : channel.post_recv(0, 9, one));
    }
    for (const Ticket ticket : tickets) wait_for(channel, ticket);
    for (int m = 0; m < 50; ++m) expect(data[static_cast<std::size_t>(m)] == pattern(0, m, 100), "order");
    barrier(channel, 1);
  }));
}

TEST_CASE("gloo messages: test() says false until the message is there and frees the ticket", "[gloo]") {
  require_well(run_ranks(2, [](int rank, GlooChannel& channel) {
    std::vector<std::int32_t> data = rank == 0 ? pattern(0, 1, 10) : std::vector<std::int32_t>(10);
    if (rank == 1) {
      const Ticket ticket = channel.post_recv(0, 5, data);
      expect(!channel.test(ticket), "nothing was sent yet");
      barrier(channel, 1);  // only now the sender posts
      const Deadline deadline = Deadline::after(std::chrono::seconds(10));
      while (!channel.test(ticket)) expect(!deadline.expired(), "the message arrives");
      expect(data == pattern(0, 1, 10), "content");
      const Ending again = ending_of([&] { channel.test(ticket); });
      expect(again.code == ErrorCode::invalid_argument, "the ticket is used up");
    } else {
      barrier(channel, 1);
      wait_for(channel, channel.post_send(1, 5, data));
    }
    barrier(channel, 2);
  }));
}

TEST_CASE("gloo messages: unequal lengths never pair; the waiter times out naming the rank", "[gloo]") {
  for (const auto& [sent, expected] : {std::pair{100, 10}, std::pair{10, 100}, std::pair{0, 1}}) {
    require_well(run_ranks(2, [sent = sent, expected = expected](int rank, GlooChannel& channel) {
      std::vector<std::int32_t> data(static_cast<std::size_t>(rank == 0 ? sent : expected), 7 * (1 - rank));
      const Ticket ticket = rank == 0 ? channel.post_send(1, 5, data) : channel.post_recv(0, 5, data);
      const Ending ending = ending_of([&] { wait_for(channel, ticket, std::chrono::milliseconds(300)); });
      // Whichever rank times out first leaves, and the other may see that.
      expect(ending.code == ErrorCode::timeout || ending.code == ErrorCode::peer_lost, "an error: " + ending.text);
      expect(ending.says(rank == 0 ? "rank 1" : "rank 0"), "names the rank: " + ending.text);
      expect(ending.seconds < 1.0, "on time");
      for (const auto value : data) expect(value == 7 * (1 - rank), "data untouched");
    }));
  }
}

TEST_CASE("gloo messages: a peer outside the group, or oneself, is refused and breaks nothing", "[gloo]") {
  require_well(run_ranks(2, [](int rank, GlooChannel& channel) {
    std::array<std::int32_t, 1> data{};
    for (const int peer : {-1, 2, rank}) {
      const Ending ending = ending_of([&] { channel.post_send(peer, 1, data); });
      expect(ending.code == ErrorCode::invalid_argument, ending.text);
    }
    barrier(channel, 1);
  }));
}

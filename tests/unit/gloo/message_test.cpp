// Point-to-point messages of the Gloo channel.
#include <array>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
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
        tickets.push_back(channel.post_send(peer, slot(static_cast<std::uint64_t>(m)), sent.back()));
      }
    }
    std::vector<std::pair<int, int>> of;
    for (int m = kMessages; m-- > 0;) {
      for (int peer = 0; peer < 3; ++peer) {
        if (peer == rank) continue;
        received.emplace_back(static_cast<std::size_t>(m * 7), -1);
        of.emplace_back(peer, m);
        tickets.push_back(channel.post_recv(peer, slot(static_cast<std::uint64_t>(m)), received.back()));
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

TEST_CASE("gloo messages: what has to pair and differs is a mismatch that names the other rank", "[gloo]") {
  constexpr int kLarge = 100'000;
  const std::vector<std::pair<int, int>> lengths = {{100, 10},    {10, 100},           {0, 1}, {1, 0}, {kLarge, 10},
                                                    {10, kLarge}, {kLarge, kLarge + 1}};
  for (const int receive_from : {0, kAnyPeer}) {
    for (const bool is_first : {false, true}) {  // the receive
      for (const auto& [sent, expected] : lengths) {
        const auto store = make_memory_store();
        const auto endings = run_ranks(2, [&, sent = sent, expected = expected](int rank, GlooChannel& channel) {
          std::vector<std::int32_t> data(static_cast<std::size_t>(rank == 0 ? sent : expected), 7 * (1 - rank));
          if (is_first != (rank == 1)) store->wait_for("first", 20s);
          const Ticket ticket = rank == 0 ? channel.post_send(1, 5, data) : channel.post_recv(receive_from, 5, data);
          store->set("first", "");
          wait_for(channel, ticket);
        });
        INFO(sent << " sent, " << expected << " expected from " << receive_from << "; the receive is "
                  << (is_first ? "first\n" : "second\n") << show(endings));
        // One of the two finds it. A small message is kept, and its sender may leave.
        const bool finds = endings[1].code == ErrorCode::mismatch;
        const Ending& finder = endings[finds ? 1 : 0];
        CHECK(finder.code == ErrorCode::mismatch);
        CHECK(finder.rank == (finds ? 0 : 1));
        CHECK(finder.says("must have the same count and dtype"));
        const Ending& other = endings[finds ? 0 : 1];
        CHECK((!other.code || other.code == ErrorCode::peer_lost || other.code == ErrorCode::mismatch));
        for (const Ending& ending : endings) CHECK(ending.seconds < kPromptSeconds);
      }
    }
  }
}

TEST_CASE("gloo messages: another content of the same length is a mismatch, and other streams do not care", "[gloo]") {
  const auto endings = run_ranks(2, [](int rank, GlooChannel& channel) {
    std::vector<std::int32_t> data(3, 1), other(3, 2);
    if (rank == 0) {
      wait_for(channel, channel.post_send(1, slot(1) | 1, data));
      wait_for(channel, channel.post_send(1, slot(2) | 2, other));
      barrier(channel, 1);
    } else {
      wait_for(channel, channel.post_recv(0, slot(2) | 2, data));
      expect(data == std::vector<std::int32_t>(3, 2), "the one of its stream");
      wait_for(channel, channel.post_recv(0, slot(1) | 2, data));
    }
  });
  INFO(show(endings));
  CHECK(endings[1].code == ErrorCode::mismatch);
  CHECK(endings[1].says("rank 0 sent 12 bytes of another count or dtype"));
}

TEST_CASE("gloo messages: what did not fit the next receive goes to no later one", "[gloo]") {
  require_well(run_ranks(2, [](int rank, GlooChannel& channel) {
    std::vector<std::int32_t> small(2, rank), larger(4, rank);
    if (rank == 0) {
      barrier(channel, 1);
      return (void)wait_for(channel, channel.post_send(1, slot(3), larger));
    }
    channel.post_recv(0, slot(3), small);
    const Ticket second = channel.post_recv(0, slot(3), larger);
    barrier(channel, 1);
    const Ending ending = ending_of([&] { wait_for(channel, second); });
    expect(ending.code == ErrorCode::mismatch && ending.rank == 0, ending.text);
    expect(larger == std::vector<std::int32_t>(4, 1), "untouched");
  }));
}

TEST_CASE("gloo messages: one that does not fit is told in every wait, whatever that is for", "[gloo]") {
  for (const int awaited : {0, 2}) {
    INFO("rank 1 waits for a message of rank " << awaited);
    const auto endings = run_ranks(3, [awaited](int rank, GlooChannel& channel) {
      std::vector<std::int32_t> small(2, rank), larger(4, rank);
      if (rank == 0) {
        barrier(channel, 1);
        wait_for(channel, channel.post_send(1, slot(3), larger));
      } else if (rank == 1) {
        channel.post_recv(0, slot(3), small);
        const Ticket second = channel.post_recv(awaited, slot(3), larger);
        barrier(channel, 1);
        wait_for(channel, second);
      } else {
        barrier(channel, 1);
      }
      wait_for(channel, channel.post_recv(rank == 1 ? 2 : 1, slot(4), small));  // which nobody sends
    });
    INFO(show(endings));
    CHECK(endings[1].code == ErrorCode::mismatch);
    CHECK(endings[1].rank == 0);
  }
}

TEST_CASE("gloo messages: those of one stream pair in their order, whatever their sizes", "[gloo][rest]") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  for (int round = 0; round < 20; ++round) {
    require_well(run_ranks(2, [seed, round](int rank, GlooChannel& channel) {
      std::mt19937 sizes(seed + static_cast<unsigned>(round)), own(seed ^ static_cast<unsigned>(rank * 77 + round));
      constexpr std::size_t kMessages = 60;
      std::vector<std::vector<std::int32_t>> data(kMessages);
      std::vector<Ticket> tickets;
      std::size_t waited = 0;
      for (std::size_t m = 0; m < kMessages; ++m) {
        constexpr std::array<std::size_t, 6> kCounts = {0, 1, 300, 16'000, 17'000, 90'000};  // 64 KiB is between
        data[m].assign(kCounts.at(sizes() % kCounts.size()), rank == 0 ? static_cast<std::int32_t>(m) : -1);
        const std::uint64_t where = slot(3 + m % 2) | (m + 1);
        tickets.push_back(rank == 0 ? channel.post_send(1, where, data[m]) : channel.post_recv(0, where, data[m]));
        // Some are waited for, in their order: nobody waits for one before which another waits.
        while (own() % 3 == 0 && waited < tickets.size()) wait_for(channel, tickets[waited++]);
      }
      while (waited < tickets.size()) wait_for(channel, tickets[waited++]);
      for (std::size_t m = 0; m < kMessages; ++m) {
        for (const std::int32_t value : data[m]) expect(value == static_cast<std::int32_t>(m), "order and content");
      }
      barrier(channel, 1);
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

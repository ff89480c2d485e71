// Messages to neighbours and to ranks of other hosts at once.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <vector>

#include "backend/capabilities.hpp"
#include "conformance/hosts/host_ranks.hpp"

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kCounts[] = {0, 1, 500, 5000, 70'000};

// Waits for half of them, and tests the rest until they have ended, in any order.
void finish(Channel& channel, std::vector<Ticket> tickets, std::mt19937& random) {
  std::shuffle(tickets.begin(), tickets.end(), random);
  const std::size_t waited = tickets.size() / 2;
  for (std::size_t i = 0; i < waited; ++i) wait_for(channel, tickets[i]);
  tickets.erase(tickets.begin(), tickets.begin() + static_cast<std::ptrdiff_t>(waited));
  const Deadline deadline = Deadline::after(20s);
  while (!tickets.empty()) {
    std::erase_if(tickets, [&](Ticket ticket) { return channel.test(ticket).has_value(); });
    expect(!deadline.expired(), "all messages end");
  }
}

}  // namespace

TEST_CASE("hosts messages: all to all, many in flight, of all sizes, arrive whole and in order", "[hosts]") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  constexpr int kRounds = 3;
  run_on_layouts([seed](HostRank& self) {
    std::mt19937 random(seed + static_cast<unsigned>(self.rank));
    std::vector<Data> sent, received;
    std::vector<Ticket> tickets;
    const auto all = static_cast<std::size_t>(self.size()) * std::size(kCounts) * kRounds;
    sent.reserve(all);
    received.reserve(all);
    for (int round = 0; round < kRounds; ++round) {
      for (const std::size_t count : kCounts) {
        for (int peer = 0; peer < self.size(); ++peer) {
          if (peer == self.rank) continue;
          sent.push_back(message_of(self.rank, round, count));
          received.emplace_back(count, -1);
          if (random() % 2 == 0) {
            tickets.push_back(self.channel.post_send(peer, slot(count), sent.back()));
            tickets.push_back(self.channel.post_recv(peer, slot(count), received.back()));
          } else {
            tickets.push_back(self.channel.post_recv(peer, slot(count), received.back()));
            tickets.push_back(self.channel.post_send(peer, slot(count), sent.back()));
          }
        }
      }
    }
    finish(self.channel, std::move(tickets), random);
    auto next = received.begin();
    for (int round = 0; round < kRounds; ++round) {
      for (const std::size_t count : kCounts) {
        for (int peer = 0; peer < self.size(); ++peer) {
          if (peer != self.rank) expect(*next++ == message_of(peer, round, count), "what was received");
        }
      }
    }
  });
}

TEST_CASE("hosts messages: a small one to a neighbour needs no operation, and pairs with those that have one",
          "[hosts]") {
  if (!hosts_backend().starts_with("hosts")) return;
  constexpr int kRounds = 40;
  run_on_layouts([](HostRank& self) {
    auto& at_once = *self.channel.can().immediate;
    int without_operation = 0;
    const auto send_to = [&](int peer, const Data& data) {
      const bool went = at_once.send_immediate(peer, slot(1), data);
      expect(!went || self.is_near(peer), "only to a neighbour");
      if (!went) send(self.channel, peer, slot(1), data);
      without_operation += went ? 1 : 0;
    };
    const auto receive_from = [&](int peer, int round) {
      Data data(3, -1);
      const bool came = round % 3 != 0 && at_once.receive_immediate(peer, slot(1), data);
      expect(!came || self.is_near(peer), "only from a neighbour");
      if (!came) recv(self.channel, peer, slot(1), data);
      expect(data == message_of(peer, round, 3), "what was received");
    };
    bool has_neighbour = false;
    for (int round = 0; round < kRounds; ++round) {
      for (int peer = 0; peer < self.size(); ++peer) {  // the lower one of a pair sends first
        if (peer == self.rank) continue;
        has_neighbour = has_neighbour || self.is_near(peer);
        if (self.rank < peer) send_to(peer, message_of(self.rank, round, 3));
        receive_from(peer, round);
        if (self.rank > peer) send_to(peer, message_of(self.rank, round, 3));
      }
    }
    expect((without_operation > 0) == has_neighbour, "some go without an operation");
  });
  run_on_layouts([](HostRank& self) {
    auto& at_once = *self.channel.can().immediate;
    self.channel.abort(Error(ErrorCode::aborted, "the test says stop"));
    Data data(3, -1);
    for (int peer = 0; peer < self.size(); ++peer) {
      if (peer == self.rank) continue;
      expect(!at_once.send_immediate(peer, slot(1), data) && !at_once.receive_immediate(peer, slot(1), data), "broken");
    }
  });
}

TEST_CASE("hosts messages: a wait tells the peer by its rank in the group", "[hosts]") {
  run_on_layouts([](HostRank& self) {
    const int right = (self.rank + 1) % self.size(), left = (self.rank + self.size() - 1) % self.size();
    Data out = message_of(self.rank, 0, 3), in(3);
    const Ticket receive = self.channel.post_recv(left, slot(1), in);
    const Ticket send = self.channel.post_send(right, slot(1), out);
    expect(wait_for(self.channel, send) == right, "a send's peer");
    expect(wait_for(self.channel, receive) == left, "a receive's peer");
  });
}

TEST_CASE("hosts messages: whoever waits for a far rank moves on what neighbours want of it", "[hosts]") {
  // Rank 0 waits for rank 2 alone, which sends when rank 1 has sent rank 0 more than fits in any buffer.
  require_well(run_ranks({0, 0, 1, 1}, [](HostRank& self) {
    constexpr std::size_t kCount = 1 << 20;
    Data large = message_of(1, 0, kCount), nothing;
    if (self.rank == 0) {
      Data in(kCount);
      const Ticket from_near = self.channel.post_recv(1, slot(1), in);
      recv(self.channel, 2, slot(2), nothing);
      expect(wait_for(self.channel, from_near) == 1 && in == large, "the neighbour's message");
    } else if (self.rank == 1) {
      send(self.channel, 0, slot(1), large);
      send(self.channel, 2, slot(3), nothing);
    } else if (self.rank == 2) {
      recv(self.channel, 1, slot(3), nothing);
      send(self.channel, 0, slot(2), nothing);
    }
  }));
}

TEST_CASE("hosts messages: what comes from afar wakes a rank that sleeps", "[hosts]") {
  // A wait looks again after 50 ms by itself, so without being woken these would take twenty seconds.
  require_well(run_ranks({0, 0, 1, 1}, [](HostRank& self) {
    if (self.rank % 2 != 0) return;
    const int peer = 2 - self.rank;
    const auto begin = std::chrono::steady_clock::now();
    for (int round = 0; round < 400; ++round) {
      Data data = message_of(0, round, 2);
      if (self.rank == 0) send(self.channel, peer, slot(1), data);
      recv(self.channel, peer, slot(1), data);
      if (self.rank == 2) send(self.channel, peer, slot(1), data);
    }
    expect(std::chrono::steady_clock::now() - begin < kPrompt, "they slept");
  }));
}

TEST_CASE("hosts messages: a neighbour's message of another length is a mismatch that names it", "[hosts]") {
  const auto endings = run_ranks({0, 1, 1}, [](HostRank& self) {
    if (self.rank == 0) return;
    Data data(self.rank == 1 ? 4 : 5);
    if (self.rank == 1)
      send(self.channel, 2, slot(1), data);
    else
      recv(self.channel, 1, slot(1), data);
  });
  INFO(show(endings));
  CHECK(endings[2].code == ErrorCode::mismatch);
  CHECK(endings[2].rank == 1);
  CHECK(endings[2].says("rank 1 sent"));
}

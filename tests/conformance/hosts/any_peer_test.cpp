// Receives that take whoever sends first: a neighbour or a rank of another host.
#include <array>
#include <chrono>
#include <cstdint>
#include <random>
#include <vector>

#include "conformance/hosts/host_ranks.hpp"

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;

namespace {

// What a receiver knows of what it has got: each sender's messages come in the order of sending, none twice.
class Count {
 public:
  explicit Count(int size) : next_(static_cast<std::size_t>(size), 0) {}
  void take(int peer, const Data& message) {
    const int number = next_.at(static_cast<std::size_t>(peer))++;
    expect(message == message_of(peer, number, message.size()),
           fmt::format("message {} of rank {} is whole, and comes in its turn", number, peer));
  }

 private:
  std::vector<int> next_;
};

void send_all(HostRank& self, int peer, int messages, std::size_t count) {
  std::vector<Data> data;
  std::vector<Ticket> tickets;
  data.reserve(static_cast<std::size_t>(messages));
  for (int m = 0; m < messages; ++m) {
    data.push_back(message_of(self.rank, m, count));
    tickets.push_back(self.channel.post_send(peer, slot(9), data.back()));
  }
  for (const Ticket ticket : tickets) expect(wait_for(self.channel, ticket) == peer, "the peer of a send");
}

}  // namespace

TEST_CASE("hosts any peer: a flood from both sides loses, doubles and reorders nothing", "[hosts]") {
  constexpr int kMessages = 200;
  constexpr std::size_t kPosted = 5;  // receives that are posted at once
  for (const std::size_t count : {std::size_t{6}, std::size_t{6000}}) {
    run_on_layouts([count](HostRank& self) {
      if (self.rank != 1) return send_all(self, 1, kMessages, count);
      Count counted(self.size());
      std::vector<Data> places(kPosted, Data(count));
      std::vector<Ticket> tickets(kPosted);
      const std::size_t all = static_cast<std::size_t>(kMessages) * static_cast<std::size_t>(self.size() - 1);
      const Deadline deadline = Deadline::after(20s);
      for (std::size_t i = 0; i < all + kPosted; ++i) {
        const std::size_t place = i % kPosted;
        if (i >= kPosted) {
          std::optional<int> peer;
          if (i % 2 == 0) peer = wait_for(self.channel, tickets[place]);
          while (!peer) {
            peer = self.channel.test(tickets[place]);
            expect(!deadline.expired(), "the message arrives");
          }
          counted.take(*peer, places[place]);
        }
        if (i < all) tickets[place] = self.channel.post_recv(kAnyPeer, slot(9), places[place]);
      }
    });
  }
}

TEST_CASE("hosts any peer: receives that name the peer, and those that do not, end in the order of posting",
          "[hosts]") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  constexpr int kMessages = 300;
  for (const int sender : {0, 2}) {  // a neighbour of rank 1, and a far one
    require_well(run_ranks({0, 0, 1, 1}, [sender, seed](HostRank& self) {
      if (self.rank == sender) return send_all(self, 1, kMessages, 20);
      if (self.rank != 1) return;
      std::mt19937 random(seed);
      std::vector<Data> places(kMessages, Data(20));
      std::vector<Ticket> tickets;
      std::size_t done = 0;
      const auto take = [&] {
        expect(wait_for(self.channel, tickets[done]) == sender, "the peer");
        expect(places[done] == message_of(sender, static_cast<int>(done), 20), "the message");
        ++done;
      };
      for (Data& place : places) {
        tickets.push_back(self.channel.post_recv(random() % 2 == 0 ? sender : kAnyPeer, slot(9), place));
        for (std::size_t waits = random() % 3; waits > 0 && done < tickets.size(); --waits) take();
      }
      while (done < tickets.size()) take();
    }));
  }
}

TEST_CASE("hosts any peer: each message goes to one receive, whichever side it comes from", "[hosts]") {
  // Exactly as many receives as messages, posted before any is sent; all ranks send to all.
  run_on_layouts([](HostRank& self) {
    constexpr int kMessages = 20;
    std::vector<Data> sent, places;
    std::vector<Ticket> sends, receives;
    const auto all = static_cast<std::size_t>(kMessages * (self.size() - 1));
    sent.reserve(all);
    places.assign(all, Data(4));
    for (Data& place : places) receives.push_back(self.channel.post_recv(kAnyPeer, slot(9), place));
    for (int m = 0; m < kMessages; ++m) {
      for (int peer = 0; peer < self.size(); ++peer) {
        if (peer == self.rank) continue;
        sent.push_back(message_of(self.rank, m, 4));
        sends.push_back(self.channel.post_send(peer, slot(9), sent.back()));
      }
    }
    Count counted(self.size());
    for (std::size_t i = 0; i < all; ++i) counted.take(wait_for(self.channel, receives[i]), places[i]);
    for (const Ticket ticket : sends) wait_for(self.channel, ticket);
  });
}

TEST_CASE("hosts any peer: a message of another length from a neighbour is a mismatch that names it", "[hosts]") {
  const auto endings = run_ranks({1, 0, 0}, [](HostRank& self) {
    Data data(self.rank == 2 ? 4 : 5);
    if (self.rank == 2) send(self.channel, 1, slot(9), data);
    if (self.rank == 1) recv(self.channel, kAnyPeer, slot(9), data);
  });
  INFO(show(endings));
  CHECK(endings[1].code == ErrorCode::mismatch);
  CHECK(endings[1].rank == 2);
}

TEST_CASE("hosts any peer: a neighbour with many messages does not starve a far rank", "[hosts]") {
  require_well(run_ranks({0, 0, 1, 1}, [](HostRank& self) {
    constexpr int kMessages = 50;
    Data nothing, place(3);
    if (self.rank == 0) {
      send_all(self, 1, kMessages, 3);
      send(self.channel, 1, slot(10), nothing);
    } else if (self.rank == 2) {
      Data last = message_of(2, 0, 3);
      const Ticket ticket = self.channel.post_send(1, slot(9), last);
      send(self.channel, 1, slot(10), nothing);  // on the same connection: the one before has been announced
      wait_for(self.channel, ticket);
    } else if (self.rank == 1) {
      recv(self.channel, 0, slot(10), nothing);
      recv(self.channel, 2, slot(10), nothing);
      int far_came = -1;
      for (int m = 0; m <= kMessages; ++m) {
        if (wait_for(self.channel, self.channel.post_recv(kAnyPeer, slot(9), place)) == 2) far_came = m;
      }
      expect(far_came == 0 || far_came == 1, fmt::format("the far message came in turn {}", far_came));
    }
  }));
}

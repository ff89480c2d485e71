// Receives that take whoever sends first: their order, their floods, and how they end when somebody is gone.
#include <array>
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"
#include "unit/gloo/mesh.hpp"

namespace {

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;

constexpr std::uint64_t kSlot = 5;

struct Packet {
  std::int32_t from = -1;
  std::int32_t number = -1;
  std::array<std::int32_t, 62> filling = {};

  Packet() = default;
  Packet(int sender, int index) : from(sender), number(index) { filling.fill(sender * 100'000 + index); }
  bool is_whole() const { return filling == Packet(from, number).filling; }
  TensorView view() { return {this, sizeof(Packet) / sizeof(std::int32_t), DType::int32}; }
};

// Ends when the receive has, polling; for half of the receives, so that both ways are under load.
int finish_by_test(GlooChannel& channel, Ticket ticket) {
  const Deadline deadline = Deadline::after(20s);
  for (;;) {
    if (const auto peer = channel.test(ticket)) return *peer;
    expect(!deadline.expired(), "the message arrives");
  }
}

// What a receiver knows of the messages it has got: each sender's come in the order of sending, none twice.
class Count {
 public:
  explicit Count(int size) : next_(static_cast<std::size_t>(size), 0) {}
  void take(int peer, const Packet& message) {
    expect(message.from == peer, fmt::format("a message of rank {}, said to be of rank {}", message.from, peer));
    expect(message.is_whole(), fmt::format("message {} of rank {} is whole", message.number, peer));
    auto& next = next_.at(static_cast<std::size_t>(peer));
    expect(message.number == next, fmt::format("rank {}: message {} came for {}", peer, message.number, next));
    ++next;
  }

 private:
  std::vector<int> next_;
};

void send_all(GlooChannel& channel, int self, int peer, int messages, std::vector<Packet>& storage) {
  storage.reserve(static_cast<std::size_t>(messages));
  std::vector<Ticket> tickets;
  for (int m = 0; m < messages; ++m) {
    storage.emplace_back(self, m);
    tickets.push_back(channel.post_send(peer, kSlot, storage.back().view()));
  }
  for (const Ticket ticket : tickets) expect(wait_for(channel, ticket) == peer, "the peer of a send");
}

}  // namespace

TEST_CASE("gloo any peer: a flood from several ranks loses, doubles and reorders nothing", "[gloo]") {
  constexpr int kMessages = 2000;
  constexpr int kSize = 5;
  constexpr std::size_t kPosted = 7;  // receives that are posted at once
  require_well(run_ranks(kSize, [](int rank, GlooChannel& channel) {
    if (rank != 0) {
      std::vector<Packet> storage;
      send_all(channel, rank, 0, kMessages, storage);
    } else {
      Count count(kSize);
      std::vector<Packet> places(kPosted);
      std::vector<Ticket> tickets;
      constexpr std::size_t kAll = std::size_t{kMessages} * (kSize - 1);
      for (std::size_t i = 0; i < kAll + kPosted; ++i) {
        const std::size_t place = i % kPosted;
        if (i >= kPosted) {
          const Ticket ticket = tickets[place];
          const int peer = i % 2 == 0 ? wait_for(channel, ticket) : finish_by_test(channel, ticket);
          count.take(peer, places[place]);
        }
        if (i >= kAll) continue;
        tickets.resize(kPosted);
        tickets[place] = channel.post_recv(kAnyPeer, kSlot, places[place].view());
      }
    }
    barrier(channel, 1);
  }));
}

TEST_CASE("gloo any peer: all ranks send to all and receive from any at once", "[gloo]") {
  constexpr int kMessages = 300;
  constexpr int kSize = 4;
  require_well(run_ranks(kSize, [](int rank, GlooChannel& channel) {
    std::vector<Packet> sent, received(std::size_t{kMessages} * (kSize - 1));
    sent.reserve(received.size());
    std::vector<Ticket> sends, receives;
    for (int m = 0; m < kMessages; ++m) {
      for (int peer = 0; peer < kSize; ++peer) {
        if (peer == rank) continue;
        sent.emplace_back(rank, m);
        sends.push_back(channel.post_send(peer, kSlot, sent.back().view()));
        receives.push_back(channel.post_recv(kAnyPeer, kSlot, received[receives.size()].view()));
      }
    }
    Count count(kSize);
    for (std::size_t i = 0; i < receives.size(); ++i) count.take(wait_for(channel, receives[i]), received[i]);
    for (const Ticket ticket : sends) wait_for(channel, ticket);
    barrier(channel, 1);
  }));
}

TEST_CASE("gloo any peer: receives of one slot that name the peer, and those that do not, end in order", "[gloo]") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  constexpr int kMessages = 400;
  require_well(run_ranks(2, [seed](int rank, GlooChannel& channel) {
    for (std::uint64_t round = 0; round < 4; ++round) {
      if (round % 2 == 0 && rank == 0) barrier(channel, round);  // the receives are posted first, or the sends
      if (rank == 0) {
        std::vector<Packet> storage;
        send_all(channel, 0, 1, kMessages, storage);
      } else {
        std::mt19937 random(seed + static_cast<unsigned>(round));
        std::vector<Packet> places(kMessages);
        std::vector<Ticket> tickets;
        std::size_t done = 0;
        const auto take = [&] {
          expect(wait_for(channel, tickets[done]) == 0, "the peer");
          expect(places[done].number == static_cast<int>(done),
                 fmt::format("receive {} got message {}", done, places[done].number));
          ++done;
        };
        for (auto& place : places) {
          tickets.push_back(channel.post_recv(random() % 2 == 0 ? 0 : kAnyPeer, kSlot, place.view()));
          const std::size_t waits = round % 2 == 0 ? 0 : random() % 3;
          for (std::size_t i = 0; i < waits && done < tickets.size(); ++i) take();
        }
        if (round % 2 == 0) barrier(channel, round);
        while (done < tickets.size()) take();
      }
      barrier(channel, 100 + round);
    }
  }));
}

TEST_CASE("gloo messages: one without elements tells that its sender has come, and no sooner", "[gloo]") {
  for (const int source : {0, kAnyPeer}) {
    require_well(run_ranks(3, [source](int rank, GlooChannel& channel) {
      if (rank == 1) {
        const Ticket ticket = channel.post_recv(source, kSlot, TensorView());
        barrier(channel, 1);
        for (int i = 0; i < 1000; ++i) expect(!channel.test(ticket), "nothing was sent yet");
        barrier(channel, 2);  // only now rank 0 posts
        expect(wait_for(channel, ticket) == 0, "the peer");
        // The second has been there for a while when it is received.
        barrier(channel, 3);
        expect(wait_for(channel, channel.post_recv(source, kSlot, TensorView())) == 0, "the peer");
      } else {
        barrier(channel, 1);
        barrier(channel, 2);
        const ConstTensorView nothing;
        if (rank == 0) wait_for(channel, channel.post_send(1, kSlot, nothing));
        if (rank == 0) expect(wait_for(channel, channel.post_send(1, kSlot, nothing)) == 1, "the peer of a send");
        barrier(channel, 3);
      }
      barrier(channel, 4);
    }));
  }
}

TEST_CASE("gloo any peer: a rank that has left in good order keeps nobody from waiting for the others", "[gloo]") {
  const auto store = make_memory_store();
  require_well(run_ranks(3, [store](int rank, GlooChannel& channel) {
    Packet message(rank, 0);
    if (rank == 1) {
      wait_for(channel, channel.post_send(0, kSlot, message.view()));
      return;  // leaves
    }
    if (rank == 2) {
      store->wait_for("rank 1 has left", 20s);
      wait_for(channel, channel.post_send(0, kSlot, message.view()));
      return;
    }
    std::array<Packet, 3> got;
    const Ticket first = channel.post_recv(kAnyPeer, kSlot, got[0].view());
    const Ticket second = channel.post_recv(kAnyPeer, kSlot, got[1].view());
    expect(wait_for(channel, first) == 1, "rank 1 was first");
    const Deadline deadline = Deadline::after(kDeadline);
    while (channel.transport().why_lost({1}) == nullptr) expect(!deadline.expired(), "the connection closes");
    const Ending early = ending_of([&] { expect(!channel.test(second), "nothing was sent yet"); });
    expect(!early.code, "rank 2 may still send: " + early.text);
    store->set("rank 1 has left", "yes");
    expect(wait_for(channel, second) == 2 && got[1].is_whole(), "rank 2 sent");
    const Ending ending = ending_of([&] { wait_for(channel, channel.post_recv(kAnyPeer, kSlot, got[2].view())); });
    expect(ending.code == ErrorCode::peer_lost, "nobody is left: " + ending.text);
    expect(ending.seconds < kPromptSeconds, "soon");
  }));
}

TEST_CASE("gloo any peer: a rank that dies, or leaves after an error, ends the wait and is named", "[gloo]") {
  for (const bool dies : {true, false}) {
    const TempDir dir;
    const auto store = make_file_store(dir.path());
    RankProcess victim([&] {
      const auto own_store = make_file_store(dir.path());
      const auto channel = connect({.rank = 2, .size = 3, .store = own_store});
      own_store->wait_for(dies ? "never" : "waiting", 20s);
      channel->abort(Error(ErrorCode::aborted, "the test says stop"));
      own_store->wait_for("never", 20s);
    });
    const auto receive = [&](int rank, bool by_test) {
      return RankProcess([&dir, rank, by_test] {
        const auto own_store = make_file_store(dir.path());
        const auto channel = connect({.rank = rank, .size = 3, .store = own_store});
        Packet message;
        const Ticket ticket = channel->post_recv(kAnyPeer, kSlot, message.view());
        own_store->set(by_test ? "testing" : "blocking", "yes");
        if (by_test) {
          finish_by_test(*channel, ticket);
        } else {
          wait_for(*channel, ticket);
        }
      });
    };
    RankProcess waiter = receive(0, false);
    RankProcess tester = receive(1, true);
    store->wait_for("testing", 20s);
    store->wait_for("blocking", 20s);
    if (dies) {
      victim.kill();
    } else {
      store->set("waiting", "yes");
    }
    // Whichever of the two notices first leaves after that error, and the other may see it before the victim.
    const Ending first = waiter.wait();
    const Ending second = tester.wait();
    INFO(first.text << " / " << second.text);
    CHECK(first.code == ErrorCode::peer_lost);
    CHECK(second.code == ErrorCode::peer_lost);
    CHECK((first.rank == 2 || second.rank == 2));
    CHECK(first.rank != 0);
    CHECK(second.rank != 1);
  }
}

TEST_CASE("gloo any peer: one that waits in vain times out and says for whom", "[gloo]") {
  require_well(run_ranks(3, [](int rank, GlooChannel& channel) {
    Packet message(rank, 0);
    if (rank == 0) {
      const Ticket ticket = channel.post_recv(kAnyPeer, kSlot, message.view());
      const Ending ending = ending_of([&] { wait_for(channel, ticket, 300ms); });
      expect(ending.code == ErrorCode::timeout, ending.text);
      expect(ending.says("receive from ranks 1, 2"), ending.text);
    } else {
      // Ends when rank 0 has given up.
      ending_of([&] { wait_for(channel, channel.post_recv(0, kSlot, message.view())); });
    }
  }));
}

// Point-to-point messages, on every backend: what arrives, in which order, and what never pairs.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include <col/channel.hpp>

#include "conformance/backend/backend_ranks.hpp"
#include "support/catch.hpp"

namespace {

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;
using Data = std::vector<std::int32_t>;

constexpr std::size_t kMessageCounts[] = {0, 1, 3, 4, 1021, 60'000};
// A slot whose messages have nothing to do with those of another number.
constexpr std::uint64_t slot(std::uint64_t number) {
  return number << 32;
}
// What the cases keep for their own signals.
constexpr std::uint64_t kGo = slot(1'000'001);
constexpr std::uint64_t kLast = slot(1'000'002);

void signal(BackendRank& self, int peer, std::uint64_t which) {
  self.wait(self.channel.post_send(peer, which, Data{}));
}
void await(BackendRank& self, int peer, std::uint64_t which) {
  Data nothing;
  self.wait(self.channel.post_recv(peer, which, nothing));
}

std::optional<ErrorCode> code_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.code();
  }
  return std::nullopt;
}

bool is_end(const std::optional<ErrorCode>& code) {
  return code == ErrorCode::timeout || code == ErrorCode::peer_lost || code == ErrorCode::aborted ||
         code == ErrorCode::mismatch;
}

}  // namespace

TEST_CASE("backend messages: arrive whole, in any order of posting", "[backend]") {
  between_ranks([](BackendRank& self) {
    const int right = (self.rank + 1) % self.size, left = (self.rank + self.size - 1) % self.size;
    std::vector<Data> out, in;
    std::vector<Ticket> sends, receives;
    for (std::size_t i = 0; i < std::size(kMessageCounts); ++i) {
      out.push_back(input_of(self.rank, kMessageCounts[i]));
      sends.push_back(self.channel.post_send(right, slot(i), out.back()));
    }
    for (std::size_t i = std::size(kMessageCounts); i-- > 0;) {
      in.emplace_back(kMessageCounts[i], -1);
      receives.push_back(self.channel.post_recv(left, slot(i), in.back()));
    }
    for (const Ticket ticket : sends) expect(self.wait(ticket) == right, "a send's peer");
    for (const Ticket ticket : receives) expect(self.wait(ticket) == left, "a receive's peer");
    for (const auto& data : in) expect(data == input_of(left, data.size()), "content");
  });
}

TEST_CASE("backend messages: equal slots between two ranks pair in the order of posting", "[backend]") {
  between_ranks([](BackendRank& self) {
    for (const std::size_t count : {std::size_t{10}, std::size_t{30'000}}) {
      const int messages = count > 1000 ? 8 : 100;
      std::vector<Data> data;
      std::vector<Ticket> tickets;
      for (int m = 0; m < messages; ++m) data.push_back(self.rank == 0 ? input_of(m, count) : Data(count));
      for (auto& one : data) {
        if (self.rank == 0) tickets.push_back(self.channel.post_send(1, slot(count), one));
        if (self.rank == 1) tickets.push_back(self.channel.post_recv(0, slot(count), one));
      }
      for (const Ticket ticket : tickets) self.wait(ticket);
      for (int m = 0; m < messages && self.rank < 2; ++m)
        expect(data[static_cast<std::size_t>(m)] == input_of(m, count), "order");
    }
  });
}

TEST_CASE("backend messages: one of zero elements is a message like any other", "[backend]") {
  between_ranks([](BackendRank& self) {
    if (self.rank == 0) {
      await(self, 1, kGo);
      signal(self, 1, slot(5));
      signal(self, 1, slot(5));
    } else if (self.rank == 1) {
      Data nothing;
      const Ticket first = self.channel.post_recv(0, slot(5), nothing);
      const Ticket second = self.channel.post_recv(0, slot(5), nothing);
      for (int i = 0; i < 100; ++i) expect(!self.channel.test(first), "nothing was sent yet");
      signal(self, 0, kGo);
      expect(self.wait(second) == 0 && self.wait(first) == 0, "both came");
    }
  });
}

TEST_CASE("backend messages: test() says nothing until the message is there, then the peer, once", "[backend]") {
  between_ranks([](BackendRank& self) {
    Data data = self.rank == 0 ? input_of(7, 10) : Data(10);
    if (self.rank == 0) {
      await(self, 1, kGo);
      self.wait(self.channel.post_send(1, slot(5), data));
      await(self, 1, kLast);  // a rank that has left would be another reason to throw
    } else if (self.rank == 1) {
      const Ticket ticket = self.channel.post_recv(0, slot(5), data);
      expect(!self.channel.test(ticket).has_value(), "nothing was sent yet");
      signal(self, 0, kGo);
      const Deadline deadline = Deadline::after(20s);
      std::optional<int> peer;
      while (!(peer = self.channel.test(ticket))) expect(!deadline.expired(), "the message arrives");
      expect(*peer == 0 && data == input_of(7, 10), "from whom, and what");
      expect(code_of([&] { self.channel.test(ticket); }) == ErrorCode::invalid_argument, "the ticket is used up");
      signal(self, 0, kLast);
    }
  });
}

TEST_CASE("backend messages: a receive from any peer takes one message of each sender, and says whose", "[backend]") {
  between_ranks([](BackendRank& self) {
    for (const std::size_t count : kMessageCounts) {
      if (self.rank != 0) {
        const Data data = input_of(self.rank, count);
        self.wait(self.channel.post_send(0, slot(count), data));
        continue;
      }
      std::vector<Data> data(static_cast<std::size_t>(self.size - 1), Data(count, -1));
      std::vector<Ticket> tickets;
      for (auto& one : data) tickets.push_back(self.channel.post_recv(kAnyPeer, slot(count), one));
      std::set<int> peers;
      for (std::size_t i = 0; i < tickets.size(); ++i) {
        const int peer = self.wait(tickets[i]);
        expect(data[i] == input_of(peer, count), "content");
        peers.insert(peer);
      }
      expect(peers.size() == data.size() && peers.count(0) == 0, "everybody once");
    }
  });
}

TEST_CASE("backend messages: an earlier receive from a named peer goes before one from any", "[backend]") {
  between_ranks([](BackendRank& self) {
    if (self.rank > 1) return;
    for (const std::size_t count : {std::size_t{5}, std::size_t{40'000}}) {
      Data first = input_of(1, count), second = input_of(2, count);
      if (self.rank == 1) {
        await(self, 0, kGo);
        const Ticket one = self.channel.post_send(0, slot(count), first);
        const Ticket two = self.channel.post_send(0, slot(count), second);
        self.wait(one);
        self.wait(two);
        continue;
      }
      Data named(count), any(count);
      const Ticket from_named = self.channel.post_recv(1, slot(count), named);
      const Ticket from_any = self.channel.post_recv(kAnyPeer, slot(count), any);
      signal(self, 1, kGo);
      expect(self.wait(from_any) == 1 && self.wait(from_named) == 1, "peers");
      expect(named == first && any == second, "order");
    }
  });
}

TEST_CASE("backend messages: many in flight, waited for in any order", "[backend]") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  on_every_backend([seed](BackendRank& self) {
    constexpr std::size_t kMessages = 75;
    std::mt19937 random(seed + static_cast<unsigned>(self.rank));
    struct Post {
      int peer;
      std::size_t number;
      bool sending;
    };
    std::vector<Post> posts;
    for (int peer = 0; peer < self.size; ++peer) {
      for (std::size_t m = 0; m < kMessages && peer != self.rank; ++m) {
        posts.push_back({peer, m, true});
        posts.push_back({peer, m, false});
      }
    }
    std::shuffle(posts.begin(), posts.end(), random);
    // Lengths from nothing to beyond what any backend sends at once.
    const auto count_of = [](std::size_t number) { return number * number * 8; };
    std::vector<Data> data;
    std::vector<std::pair<Ticket, std::size_t>> open;
    for (const Post& post : posts) {
      const std::size_t count = count_of(post.number);
      data.push_back(post.sending ? input_of(self.rank, count) : Data(count, -1));
      open.emplace_back(post.sending ? self.channel.post_send(post.peer, slot(post.number), data.back())
                                     : self.channel.post_recv(post.peer, slot(post.number), data.back()),
                        data.size() - 1);
    }
    std::shuffle(open.begin(), open.end(), random);
    for (const auto& [ticket, i] : open) {
      expect(self.wait(ticket) == posts[i].peer, "peer");
      if (!posts[i].sending) expect(data[i] == input_of(posts[i].peer, data[i].size()), "content");
    }
  });
}

TEST_CASE("backend messages: huge ones in both directions at once do not lock", "[backend][rest]") {
  constexpr std::size_t kCount = 3'000'000;
  between_ranks([](BackendRank& self) {
    const int right = (self.rank + 1) % self.size, left = (self.rank + self.size - 1) % self.size;
    const Data out = input_of(self.rank, kCount);
    Data in(kCount, -1);
    // First with every rank waiting for its send, then by looking alone.
    const Ticket send = self.channel.post_send(right, slot(1), out),
                 receive = self.channel.post_recv(left, slot(1), in);
    self.wait(send);
    self.wait(receive);
    expect(in == input_of(left, kCount), "content");

    std::fill(in.begin(), in.end(), -1);
    const Ticket send_again = self.channel.post_send(right, slot(2), out),
                 again = self.channel.post_recv(left, slot(2), in);
    bool sent = false, received = false;
    const Deadline deadline = Deadline::after(20s);
    while (!sent || !received) {
      expect(!deadline.expired(), "both end");
      if (!sent) sent = self.channel.test(send_again).has_value();
      if (!received) received = self.channel.test(again).has_value();
    }
    expect(in == input_of(left, kCount), "content");
  });
}

TEST_CASE("backend messages: a flood that nobody waits for yet is kept", "[backend]") {
  constexpr std::size_t kMessages = 1000, kCount = 100;
  between_ranks([](BackendRank& self) {
    if (self.rank != 0) {
      std::vector<Ticket> tickets;
      const Data data = input_of(self.rank, kCount);
      for (std::size_t m = 0; m < kMessages; ++m) tickets.push_back(self.channel.post_send(0, slot(m), data));
      tickets.push_back(self.channel.post_send(0, kLast, data));
      for (const Ticket ticket : tickets) self.wait(ticket);
      return;
    }
    for (int peer = self.size; --peer > 0;) {
      Data data(kCount, -1);
      self.wait(self.channel.post_recv(peer, kLast, data));
      for (std::size_t m = kMessages; m-- > 0;) {
        std::fill(data.begin(), data.end(), -1);
        self.wait(self.channel.post_recv(peer, slot(m), data));
        expect(data == input_of(peer, kCount), "content");
      }
    }
  });
}

TEST_CASE("backend messages: what was sent arrives although the sender has left", "[backend]") {
  between_ranks([](BackendRank& self) {
    if (self.rank > 1) return;
    Data small = self.rank == 0 ? input_of(0, 100) : Data(100);
    Data large = self.rank == 0 ? input_of(0, 500'000) : Data(500'000);
    if (self.rank == 0) {
      self.wait(self.channel.post_send(1, slot(1), large));
      const Ticket ticket = self.channel.post_send(1, slot(2), small);
      bool sent = false;  // some backends do not wait for the receiver
      for (int i = 0; i < 1000 && !sent; ++i) sent = self.channel.test(ticket).has_value();
      self.store->set("sent", sent ? "yes" : "no");
      if (!sent) self.wait(ticket);
    } else {
      self.wait(self.channel.post_recv(0, slot(1), large));
      if (self.store->wait_for("sent", 20s) == "yes") self.store->wait_for("left/0", 20s);
      self.wait(self.channel.post_recv(0, slot(2), small));
      expect(large == input_of(0, 500'000) && small == input_of(0, 100), "content");
    }
  });
}

TEST_CASE("backend messages: unequal lengths never pair, and nothing is written", "[backend]") {
  for (const auto& [sent, expected] : {std::pair{100, 10}, std::pair{10, 100}, std::pair{0, 1}, std::pair{1, 0},
                                       std::pair{50'000, 49'999}, std::pair{50'000, 10}, std::pair{10, 50'000}}) {
    INFO(sent << " sent, " << expected << " expected");
    on_every_backend(
        [sent = sent, expected = expected](BackendRank& self) {
          Data data(static_cast<std::size_t>(self.rank == 0 ? sent : expected), self.rank);
          if (self.rank == 0) {
            // A small one may count as sent.
            const auto code = code_of([&] { self.wait(self.channel.post_send(1, slot(5), data), 200ms); });
            expect(!code || is_end(code), "no other error");
            expect(is_end(code_of([&] { await(self, 1, kLast); })), "one of the two ends the channel");
          } else {
            const auto code = code_of([&] { self.wait(self.channel.post_recv(0, slot(5), data), 200ms); });
            expect(is_end(code), "no message of that length");
            expect(data == Data(data.size(), 1), "untouched");
          }
        },
        {2});
  }
}

TEST_CASE("backend messages: a peer outside the group, or oneself, is refused and breaks nothing", "[backend]") {
  between_ranks([](BackendRank& self) {
    std::array<std::int32_t, 1> data{};
    for (const int peer : {-2, self.size, self.rank}) {
      expect(code_of([&] { self.channel.post_send(peer, slot(1), data); }) == ErrorCode::invalid_argument, "send");
      expect(code_of([&] { self.channel.post_recv(peer, slot(1), data); }) == ErrorCode::invalid_argument, "receive");
    }
    expect(code_of([&] { self.channel.post_send(kAnyPeer, slot(1), data); }) == ErrorCode::invalid_argument,
           "send to any");
    if (self.rank == 0) signal(self, 1, kLast);
    if (self.rank == 1) await(self, 0, kLast);
  });
}

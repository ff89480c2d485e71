// Point to point: messages, tags, oneself, batches, receives that name no sender, objects, and messages that do not
// fit.
#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>

#include "conformance/group/worlds.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("point to point: a message arrives, of any size", "[group]") {
  threads_on_each_backend(2, [](Group& group) {
    for (const std::size_t count : {0u, 1u, 1000u, 300000u}) {
      std::vector<int> data(count);
      if (group.rank() == 0) std::iota(data.begin(), data.end(), 7);
      if (group.rank() == 0)
        group.send(data, 1);
      else
        group.recv(data, 0);
      for (std::size_t i = 0; i < count; ++i) expect(data[i] == static_cast<int>(i) + 7);
    }
  });
}

TEST_CASE("point to point: tags keep messages apart, order holds within a tag", "[group]") {
  threads_on_each_backend(2, [](Group& group) {
    std::array<int, 1> a{}, b{};
    if (group.rank() == 0) {
      group.send(std::array{10}, 1, {.tag = 3});
      group.send(std::array{11}, 1, {.tag = 3});
      group.send(std::array{20}, 1, {.tag = -4});
    } else {
      group.recv(a, 0, {.tag = 3});
      group.recv(b, 0, {.tag = 3});
      expect(a[0] == 10 && b[0] == 11);
      group.recv(a, 0, {.tag = -4});
      expect(a[0] == 20);
    }
  });
}

TEST_CASE("point to point: a ring of sendrecv does not deadlock", "[group]") {
  threads_on_each_backend(5, [](Group& group) {
    const int n = group.size();
    const int next = (group.rank() + 1) % n, previous = (group.rank() + n - 1) % n;
    std::vector<int> value(50000, group.rank()), got(value.size());
    for (int round = 0; round < n; ++round) {
      group.sendrecv(value, next, got, previous);
      value.swap(got);
    }
    expect(value.front() == group.rank() && value.back() == group.rank());
  });
}

TEST_CASE("point to point: messages to oneself and to others mix", "[group]") {
  threads_on_each_backend(2, [](Group& group) {
    const int me = group.rank(), other = 1 - me;
    std::array<int, 2> got{};
    group.send(std::array{me, 1}, me);
    group.sendrecv(std::array{me, 2}, other, got, other);
    expect(got == std::array{other, 2});
    group.recv(got, me);
    expect(got == std::array{me, 1});
  });
}

TEST_CASE("point to point: a longer message is a mismatch on both sides, and kills nobody", "[group]") {
  threads_on_each_backend(2, all_end({.code = ErrorCode::mismatch, .promptly = true}), [&](Group& group) {
    std::vector<int> data(group.rank() == 0 ? 1000u : 10u);
    if (group.rank() == 0)
      group.send(data, 1);
    else
      group.recv(data, 0);
    // A short message is kept, so that its sender may learn of it only in the next call that waits.
    group.barrier();
  });
}

TEST_CASE("point to point: a rank outside the group is refused", "[group]") {
  threads_on_each_backend(2, [](Group& group) {
    expect_error(ErrorCode::invalid_argument, "its ranks are 0 to 1", [&] { group.send(std::array{1}, 2); });
  });
}

// Two ranks of which rank 0 sends what does not fit to rank 1. Both then meet, so that the sender waits too where its
// message was kept.
void exchange(const Judge& judge, const std::function<void(Group&)>& send, const std::function<void(Group&)>& recv) {
  const auto body = [&](Group& group) {
    (group.rank() == 0 ? send : recv)(group);
    group.barrier();
  };
  threads_on_each_backend(2, judge, body, {.timeout = 10s});
}

TEST_CASE("messages: tags keep messages apart, whatever the order in which they are taken", "[group]") {
  threads_on_each_backend(2, [](Group& group) {
    for (const std::size_t count : {1u, 50000u}) {
      std::vector<int> red(count, 1), green(count, 2), blue(count, 3);
      if (group.rank() == 0) {
        std::vector<Work> works;
        works.push_back(group.isend(red, 1, {.tag = 1}));
        works.push_back(group.isend(green, 1, {.tag = 2}));
        works.push_back(group.isend(blue, 1));
        for (Work& work : works) work.wait();
      } else {
        std::vector<int> got(count);
        group.recv(got, 0);
        expect(got == blue);
        group.recv(got, 0, {.tag = 2});
        expect(got == green);
        group.recv(got, 0, {.tag = 1});
        expect(got == red);
      }
    }
  });
}

// Small ones that nothing waits for take a shorter way than those in flight, and neither may overtake the other.
TEST_CASE("messages: blocking and started ones of all sizes stay in order within a tag", "[group]") {
  const unsigned seed = std::random_device()();
  INFO("seed " << seed);
  threads_on_each_backend(2, [&](Group& group) {
    constexpr std::size_t kCounts[] = {0, 1, 2, 100, 2048, 2049, 30'000};
    constexpr int kTags = 3, kRounds = 40;
    struct Sent {
      int tag;
      std::size_t count;
      int value;
    };
    std::mt19937 shared(seed), own(seed + static_cast<unsigned>(group.rank()) + 1);  // `shared`: equal on both ranks
    int value = 0;
    for (int round = 0; round < kRounds; ++round) {
      const int sender = static_cast<int>(shared() % 2);
      std::vector<Sent> messages(1 + shared() % 12);
      for (Sent& sent : messages)
        sent = {static_cast<int>(shared() % kTags), kCounts[shared() % std::size(kCounts)], ++value};
      std::vector<std::vector<int>> data;
      std::vector<Work> works;
      data.reserve(messages.size());
      if (group.rank() == sender) {
        // One that blocks may need its receive, which may come after that of another tag; in shared memory, only a
        // large one.
        for (const Sent& sent : messages) {
          data.emplace_back(sent.count, sent.value);
          if (group.backend() != "shm" || sent.count * sizeof(int) > 4096 || own() % 3 == 0)
            works.push_back(group.isend(data.back(), 1 - sender, {.tag = sent.tag}));
          else
            group.send(data.back(), 1 - sender, {.tag = sent.tag});
        }
      } else {
        std::array<std::deque<Sent>, kTags> left;
        for (const Sent& sent : messages) left[static_cast<std::size_t>(sent.tag)].push_back(sent);
        std::vector<Sent> order;
        while (order.size() < messages.size()) {
          auto& next = left[own() % kTags];
          if (next.empty()) continue;
          order.push_back(next.front());
          next.pop_front();
        }
        for (const Sent& sent : order) {
          data.emplace_back(sent.count, -1);
          if (own() % 3 == 0)
            works.push_back(group.irecv(data.back(), sender, {.tag = sent.tag}));
          else
            group.recv(data.back(), sender, {.tag = sent.tag});
        }
        messages = order;
      }
      for (Work& work : works) work.wait();
      for (std::size_t i = 0; i < messages.size(); ++i) {
        const auto& got = data[i];
        expect(std::ranges::all_of(got, [&](int element) { return element == messages[i].value; }),
               fmt::format("message {} of tag {}", messages[i].value, messages[i].tag));
      }
    }
  });
}

TEST_CASE("messages: of zero elements are messages like any other", "[group]") {
  threads_on_each_backend(2, [](Group& group) {
    std::vector<int> nothing, one{7}, got{0};
    const int other = 1 - group.rank();
    if (group.rank() == 0) {
      group.send(nothing, other);
      group.send(one, other);
      group.send(nothing, other, {.tag = 5});
    } else {
      group.recv(nothing, other);
      group.recv(got, other);
      expect(got == one);
      expect(group.recv_any(nothing, {.tag = 5}) == other);
    }
    group.sendrecv(nothing, other, nothing, other);
    group.send(nothing, group.rank());
    group.recv(nothing, group.rank());
  });
}

TEST_CASE("messages: to oneself, sent before or after the receive was started", "[group]") {
  for (const int ranks : {1, 2}) {
    threads_on_each_backend(ranks, [](Group& group) {
      const int me = group.rank();
      std::array<int, 2> a{}, b{};
      group.send(std::array{1, me}, me);
      group.send(std::array{2, me}, me);
      group.recv(a, me);
      Work second = group.irecv(b, me);
      second.wait();
      expect(a == std::array{1, me} && b == std::array{2, me});
      expect(second.source() == me);

      Work early = group.irecv(a, me, {.tag = 9});
      expect(!early.test());
      group.isend(std::array{3, me}, me, {.tag = 9}).wait();
      expect(early.test());
      expect(a == std::array{3, me} && early.source() == me);

      group.sendrecv(std::array{4, me}, me, b, me);
      expect(b == std::array{4, me});
    });
  }
}

TEST_CASE("messages: to oneself are taken in the order in which the receives were started", "[group]") {
  threads_on_each_backend(2, [](Group& group) {
    const int me = group.rank();
    std::vector<int> first{0}, second{0}, third{0};
    const std::vector<int> one{1}, two{2}, three{3};
    Work early = group.irecv(first, me);
    const std::array messages{Message::recv(second, me), Message::send(one, me), Message::recv(third, me),
                              Message::send(two, me), Message::send(three, me)};
    group.batch(messages);
    early.wait();
    expect(first == one && second == two && third == three, fmt::format("{} {} {}", first[0], second[0], third[0]));
  });
}

TEST_CASE("messages: a blocking recv of what oneself did not send is refused, and nothing has happened", "[group]") {
  for (const int ranks : {1, 2}) {
    threads_on_each_backend(ranks, [](Group& group) {
      const int me = group.rank(), other = group.size() - 1 - me;
      std::vector<int> sent{me}, got{-1};
      const auto refused = [&](const auto& call) {
        const Error error = error_of(call);
        expect(error.code() == ErrorCode::invalid_argument, error.what());
        expect(has(error.message(), "nothing was sent to oneself"), error.what());
      };
      refused([&] { group.recv(got, me); });
      if (group.size() == 1) refused([&] { group.recv_any(got); });
      group.send(sent, me, {.tag = 1});
      refused([&] { group.recv(got, me, {.tag = 2}); });
      // The half that could have been sent has not been: the next message is the next.
      if (group.size() == 2) refused([&] { group.sendrecv(std::vector<int>{99}, other, got, me); });
      std::vector<int> more{-1};
      const std::array two{Message::recv(got, me, 1), Message::recv(more, me, 1)};
      refused([&] { group.batch(two); });
      // What was started before comes first: it takes the only one there is.
      Work early = group.irecv(got, me, {.tag = 3});
      refused([&] { group.sendrecv(std::vector<int>{5}, me, got, me, {.tag = 3}); });
      group.send(std::vector<int>{6}, me, {.tag = 3});
      early.wait();
      expect(got[0] == 6);
      group.recv(got, me, {.tag = 1});
      expect(got[0] == me);
      if (group.size() == 2) {
        group.sendrecv(sent, other, got, other);
        expect(got[0] == other);
      }
    });
  }
}

TEST_CASE("messages: a batch in an order that would deadlock one by one", "[group]") {
  const unsigned seed = std::random_device()();
  INFO("seed " << seed);
  threads_on_each_backend(4, [&](Group& group) {
    const int n = group.size(), me = group.rank();
    const auto ranks = static_cast<std::size_t>(n);
    constexpr std::size_t kCount = 70000;  // longer than any channel keeps
    std::vector<int> out(kCount * ranks), in(kCount * ranks, -1);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = me * 10 + static_cast<int>(i / kCount);
    const ConstTensorView from(out);
    const TensorView to(in);
    std::vector<Message> messages;
    // All receives come first, of all ranks: one by one, nobody would ever send.
    for (std::size_t r = 0; r < ranks; ++r)
      messages.push_back(Message::recv(to.slice(r * kCount, kCount), static_cast<int>(r)));
    for (std::size_t r = 0; r < ranks; ++r)
      messages.push_back(Message::send(from.slice(r * kCount, kCount), static_cast<int>(r)));
    for (int round = 0; round < 3; ++round) {
      std::fill(in.begin(), in.end(), -1);
      group.batch(messages);
      for (std::size_t i = 0; i < in.size(); ++i) expect(in[i] == static_cast<int>(i / kCount) * 10 + me);
      std::shuffle(messages.begin(), messages.end(), std::mt19937(seed + static_cast<unsigned>(me + round)));
    }
    group.batch({});
  });
}

TEST_CASE("messages: a batch that names no rank is refused", "[group]") {
  threads_on_each_backend(2, [](Group& group) {
    std::vector<int> data{1};
    for (const int peer : {-1, 2}) {
      const std::array messages{Message::send(data, peer)};
      expect(error_of([&] { group.batch(messages); }).code() == ErrorCode::invalid_argument);
      expect(error_of([&] { std::ignore = group.ibatch(messages); }).code() == ErrorCode::invalid_argument);
    }
    group.barrier();
  });
}

TEST_CASE("messages: unequal counts or types are a mismatch on both sides, never a truncation", "[group]") {
  struct Case {
    std::size_t sent, received;
    bool other_type;
  };
  for (const Case c : {Case{4, 3, false}, Case{3, 4, false}, Case{0, 1, false}, Case{1, 0, false},
                       Case{100000, 99999, false}, Case{99999, 100000, false}, Case{8, 8, true}}) {
    INFO(c.sent << " sent, " << c.received << " awaited");
    std::vector<int> got(c.received, -1);
    std::vector<float> floats(c.received, -1);
    const auto judge = [&](const std::vector<Outcome>& outcomes) {
      CHECK(std::count(got.begin(), got.end(), 1) == 0);
      check_all(outcomes, {.code = ErrorCode::mismatch, .promptly = true});
      for (const Outcome& outcome : outcomes) CHECK(outcome.error_rank >= 0);  // the peer of whoever saw it first
    };
    exchange(
        judge, [&](Group& group) { group.send(std::vector<int>(c.sent, 1), 1); },
        [&](Group& group) { group.recv(c.other_type ? TensorView(floats) : TensorView(got), 0); });
  }
}

TEST_CASE("messages: who waits for a wrong tag is told which tags lie there", "[group]") {
  const auto judge = [](const std::vector<Outcome>& outcomes) {
    check_ending(outcomes[1], {.code = ErrorCode::timeout, .says = "tags 5, 7 lie here, which nobody receives"});
    CHECK(outcomes[1].error_rank != 1);  // nobody, where rank 0 is seen to wait for rank 1 in turn
  };
  const auto send = [](Group& group) {
    int value = 1;
    std::vector<Work> works;
    for (const int tag : {7, 8, 7, 5}) works.push_back(group.isend(value, 1, {.tag = tag}));
    for (Work& work : works) work.wait();
  };
  for (const bool from_any : {false, true}) {
    exchange(judge, send, [&](Group& group) {
      int value = 0;
      group.recv(value, 0, {.tag = 8});
      const Options options{.timeout = 2s, .tag = 6};
      from_any ? void(group.recv_any(value, options)) : group.recv(value, 0, options);
    });
  }
}

TEST_CASE("messages: to oneself, unequal counts are a mismatch too", "[group]") {
  for (const int ranks : {1, 2}) {
    threads_on_each_backend(ranks, all_end({.code = ErrorCode::mismatch}), [](Group& group) {
      std::vector<int> data(3);
      group.send(data, group.rank());
      group.recv(TensorView(data).slice(0, 2), group.rank());
    });
  }
}

// ---- Receives that name no sender

TEST_CASE("recv_any: takes all, in order from each, and says from whom", "[group]") {
  constexpr int kEach = 8;
  threads_on_each_backend(4, [](Group& group) {
    if (group.rank() != 0) {
      for (int i = 0; i < kEach; ++i) {
        std::vector<int> data(i % 2 == 0 ? 1000u : 40000u, group.rank() * 100 + i);
        group.send(data, 0, {.tag = i % 2});
      }
      group.send(std::vector<int>{group.rank()}, 0, {.tag = 2});
      return;
    }
    std::map<std::pair<int, int>, int> next;  // by source and tag
    for (int i = 0; i < kEach * 3; ++i) {
      // A rank sends both kinds by turns, so that one kind alone can be missing for a while.
      const int tag = i % 2;
      std::vector<int> data(tag == 0 ? 1000u : 40000u);
      const int source = group.recv_any(data, {.tag = tag});
      const int expected = source * 100 + 2 * next[{source, tag}]++ + tag;
      expect(source >= 1 && source <= 3 && data.front() == expected && data.back() == expected,
             fmt::format("{} from {}, not {}", data.back(), source, expected));
    }
    expect(next.size() == 6);
    for (const auto& [from, count] : next) expect(count == kEach / 2);
    for (const int source : {3, 1, 2}) {
      std::vector<int> data{0};
      group.recv(data, source, {.tag = 2});
      expect(data[0] == source);
    }
  });
}

TEST_CASE("recv_any: many asynchronous ones at once get a message each", "[group]") {
  threads_on_each_backend(3, [](Group& group) {
    constexpr int kEach = 10;
    if (group.rank() != 2) {
      for (int i = 0; i < kEach; ++i) group.send(std::vector<int>{group.rank(), i}, 2);
      return;
    }
    std::vector<std::array<int, 2>> got(2 * kEach);
    std::vector<Work> works;
    for (auto& data : got) works.push_back(group.irecv_any(data));
    std::array<int, 2> seen{};
    for (std::size_t i = works.size(); i-- > 0;) {
      works[i].wait();
      expect(works[i].source() == got[i][0]);
    }
    for (const auto& [source, number] : got) expect(number == seen[static_cast<std::size_t>(source)]++);
  });
}

TEST_CASE("recv_any: also takes what oneself has sent before", "[group]") {
  for (const int ranks : {1, 3}) {
    threads_on_each_backend(ranks, [](Group& group) {
      const int me = group.rank(), n = group.size();
      std::vector<int> got{-1};
      group.send(std::vector<int>{me}, me);
      expect(group.recv_any(got) == me && got[0] == me);
      group.barrier();
      if (n == 1) return;
      std::vector<int> sent{10 + me};
      Work send = group.isend(sent, (me + 1) % n);
      group.send(sent, me);
      int sum = 0;
      for (int i = 0; i < 2; ++i) {
        const int source = group.recv_any(got);
        expect(got[0] == 10 + source);
        sum += source;
      }
      expect(sum == me + (me + n - 1) % n);
      send.wait();
    });
  }
}

TEST_CASE("recv_any: takes nothing of another count", "[group]") {
  for (const std::size_t sent : {2u, 4u}) {
    std::vector<int> got(3, -1);
    const auto judge = [&](const std::vector<Outcome>& outcomes) {
      CHECK(got == std::vector<int>(3, -1));
      // Where a message waits at its sender's, nobody can tell that this was the one meant.
      CHECK((outcomes[1].code == ErrorCode::mismatch || outcomes[1].code == ErrorCode::timeout));
      CHECK(outcomes[0].code.has_value());
      CHECK(outcomes[0].seconds < kPromptSeconds);
    };
    threads_on_each_backend(2, judge, [&](Group& group) {
      if (group.rank() == 0)
        group.send(std::vector<int>(sent, 1), 1);
      else
        group.recv_any(got, {.timeout = 700ms});
      group.barrier();
    });
  }
}

}  // namespace
}  // namespace col::test

// Point to point beyond one message: tags, oneself, batches, and messages that do not fit.
#include <algorithm>
#include <array>
#include <functional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>

#include "conformance/group/worlds.hpp"

using col::ErrorCode;
using col::Group;
using col::Message;
using col::Work;
using col::test::error_of;
using col::test::expect;
using col::test::on_each_backend;
using namespace std::chrono_literals;

namespace {

// Two ranks of which rank 0 sends what does not fit to rank 1. Both then meet, so that the sender waits too where its
// message was kept.
std::vector<col::test::Outcome> exchange(const std::string& backend, const std::function<void(Group&)>& send,
                                         const std::function<void(Group&)>& recv) {
  const auto body = [&](Group& group, col::Context&) {
    (group.rank() == 0 ? send : recv)(group);
    group.barrier();
  };
  return col::test::run_threads(2, col::test::joined(2, backend, body), {.timeout = 10s});
}

}  // namespace

TEST_CASE("messages: tags keep messages apart, whatever the order in which they are taken", "[group]") {
  on_each_backend(2, [](Group& group) {
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

TEST_CASE("messages: of zero elements are messages like any other", "[group]") {
  on_each_backend(2, [](Group& group) {
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
    on_each_backend(ranks, [](Group& group) {
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
  on_each_backend(2, [](Group& group) {
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
    on_each_backend(ranks, [](Group& group) {
      const int me = group.rank(), other = group.size() - 1 - me;
      std::vector<int> sent{me}, got{-1};
      const auto refused = [&](const auto& call) {
        const col::Error error = error_of(call);
        expect(error.code() == ErrorCode::invalid_argument, error.what());
        expect(error.message().find("nothing was sent to oneself") != std::string::npos, error.what());
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
  on_each_backend(4, [&](Group& group) {
    const int n = group.size(), me = group.rank();
    const auto ranks = static_cast<std::size_t>(n);
    constexpr std::size_t kCount = 70000;  // longer than any channel keeps
    std::vector<int> out(kCount * ranks), in(kCount * ranks, -1);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = me * 10 + static_cast<int>(i / kCount);
    const col::ConstTensorView from(out);
    const col::TensorView to(in);
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
  on_each_backend(2, [](Group& group) {
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
  for (const std::string& backend : col::test::usable_backends()) {
    for (const Case c : {Case{4, 3, false}, Case{3, 4, false}, Case{0, 1, false}, Case{1, 0, false},
                         Case{100000, 99999, false}, Case{99999, 100000, false}, Case{8, 8, true}}) {
      std::vector<int> got(c.received, -1);
      std::vector<float> floats(c.received, -1);
      const auto outcomes = exchange(
          backend, [&](Group& group) { group.send(std::vector<int>(c.sent, 1), 1); },
          [&](Group& group) { group.recv(c.other_type ? col::TensorView(floats) : col::TensorView(got), 0); });
      INFO(backend << ": " << c.sent << " sent, " << c.received << " awaited\n" << col::test::show(outcomes));
      CHECK(std::count(got.begin(), got.end(), 1) == 0);
      for (const auto& outcome : outcomes) {
        CHECK(outcome.code == ErrorCode::mismatch);
        CHECK(outcome.error_rank >= 0);  // the peer of whoever saw it first
        CHECK(outcome.seconds < 5);
      }
    }
  }
}

TEST_CASE("messages: who waits for a wrong tag is told which tags lie there", "[group]") {
  for (const std::string& backend : col::test::usable_backends()) {
    for (const bool from_any : {false, true}) {
      const auto outcomes = exchange(
          backend,
          [&](Group& group) {
            int value = 1;
            std::vector<col::Work> works;
            for (const int tag : {7, 8, 7, 5}) works.push_back(group.isend(value, 1, {.tag = tag}));
            for (col::Work& work : works) work.wait();
          },
          [&](Group& group) {
            int value = 0;
            group.recv(value, 0, {.tag = 8});
            const col::Options options{.timeout = 500ms, .tag = 6};
            from_any ? void(group.recv_any(value, options)) : group.recv(value, 0, options);
          });
      INFO(backend << "\n" << col::test::show(outcomes));
      CHECK(outcomes[1].code == ErrorCode::timeout);
      CHECK(outcomes[1].error_rank != 1);  // nobody, where rank 0 is seen to wait for rank 1 in turn
      CHECK(outcomes[1].text.find("tags 5, 7 lie here, which nobody receives") != std::string::npos);
    }
  }
}

TEST_CASE("messages: to oneself, unequal counts are a mismatch too", "[group]") {
  for (const std::string& backend : col::test::usable_backends()) {
    for (const int ranks : {1, 2}) {
      const auto outcomes = col::test::run_threads(ranks, [&](int rank, col::Context& context) {
        Group group = context.init_group({.rank = rank, .world_size = ranks, .backend_name = backend});
        std::vector<int> data(3);
        group.send(data, rank);
        group.recv(col::TensorView(data).slice(0, 2), rank);
      });
      INFO(backend << "\n" << col::test::show(outcomes));
      for (const auto& outcome : outcomes) CHECK(outcome.code == ErrorCode::mismatch);
    }
  }
}

// Asynchronous operations: many at once, waited for in any order; and how they end when nobody waits for them, when
// their group goes, and when they fail.
#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <col/col.hpp>

#include "conformance/group/fleet.hpp"
#include "conformance/group/worlds.hpp"
#include "support/soon.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

// Every kind of flight three times, from empty to longer than any channel buffers, waited for in an order that differs
// between the ranks.
void many_in_flight(Group& group, unsigned seed) {
  std::vector<std::unique_ptr<Flight>> flights;
  std::vector<std::pair<Work, const Flight*>> works;
  int salt = 0;
  for (const std::size_t count : {0u, 7u, 30000u}) {
    for (int kind = 0; kind < kFlightKinds; ++kind) {
      flights.push_back(launch(group, kind, count, ++salt));
      for (const Work& work : flights.back()->works) works.emplace_back(work, flights.back().get());
    }
  }
  std::shuffle(works.begin(), works.end(), std::mt19937(seed + static_cast<unsigned>(group.rank())));
  for (auto& [work, flight] : works) {
    work.wait();
    expect(work.test(), flight->what);
  }
  for (const auto& flight : flights) expect_arrived(*flight);
}

TEST_CASE("async: each i-form gives what the collective promises", "[group][async]") {
  for (const int n : {1, 2, 5}) threads_on_each_backend(n, [](Group& group) { fly_each_kind(group, 100); });
}

TEST_CASE("async: many in flight, waited for in different orders, as threads", "[group][async]") {
  const unsigned seed = std::random_device()();
  INFO("seed " << seed);
  for (const int n : {2, 3, 4}) threads_on_each_backend(n, [&](Group& group) { many_in_flight(group, seed); });
}

TEST_CASE("async: many in flight, waited for in different orders, as processes", "[group][async]") {
  const unsigned seed = std::random_device()();
  INFO("seed " << seed);
  processes_on_each_backend(3, [&](Group& group) { many_in_flight(group, seed); });
}

TEST_CASE("async: blocking collectives in between keep their place in the order", "[group][async]") {
  threads_on_each_backend(3, [](Group& group) {
    std::vector<int> a(50000, 1), b(50000, 2), c(3, 3);
    std::vector<int> sum_a(a.size()), sum_b(b.size());
    Work first = group.iallreduce(a, sum_a);
    group.allreduce(c);
    Work second = group.iallreduce(b, sum_b);
    group.barrier();
    if (group.rank() == 1) first.wait();
    second.wait();
    first.wait();
    expect(c[2] == 9 && sum_a.back() == 3 && sum_b.back() == 6);
  });
}

TEST_CASE("async: many messages between two ranks, waited for in any order", "[group][async]") {
  const unsigned seed = std::random_device()();
  INFO("seed " << seed);
  threads_on_each_backend(2, [&](Group& group) {
    const int other = 1 - group.rank();
    std::vector<std::vector<int>> out, in;
    std::vector<Work> works;
    for (int i = 0; i < 60; ++i) {
      out.emplace_back(static_cast<std::size_t>(i * i * 10), group.rank() * 1000 + i);
      in.emplace_back(out.back().size());
    }
    for (std::size_t i = 0; i < out.size(); ++i) works.push_back(group.isend(out[i], other));
    for (std::vector<int>& data : in) works.push_back(group.irecv(data, other));
    std::shuffle(works.begin(), works.end(), std::mt19937(seed + static_cast<unsigned>(group.rank())));
    for (Work& work : works) work.wait();
    for (std::size_t i = 0; i < in.size(); ++i)
      expect(std::count(in[i].begin(), in[i].end(), other * 1000 + static_cast<int>(i)) ==
             static_cast<std::ptrdiff_t>(in[i].size()));
  });
}

TEST_CASE("async: a wait that was given up goes on, and a later one succeeds", "[group][async]") {
  threads_on_each_backend(2, [](Group& group, Context& context) {
    std::vector<int> in(20000, group.rank() + 1), out(in.size());
    if (group.rank() == 0) {
      Work work = group.iallreduce(in, out);
      expect(!work.wait_for(30ms));
      const Error late = work.overdue(30ms);
      expect(late.code() == ErrorCode::timeout && late.rank() == 1, late.what());
      expect(late.message().find("has not ended after 30ms: rank 1 ") != std::string::npos, late.what());
      expect(!work.test());
      expect(!work.wait_for(0ms));
      context.spec().store->set("gave up", "");
      work.wait();
      expect(work.wait_for(1ms) && work.test());
    } else {
      context.spec().store->wait_for("gave up", 20s);
      Work work = group.iallreduce(in, out);
      expect(work.wait_for(20s));
    }
    expect(out.front() == 3 && out.back() == 3);
  });
}

TEST_CASE("async: test() alone brings an operation to its end", "[group][async]") {
  threads_on_each_backend(3, [](Group& group) {
    std::vector<int> in(40000, 1), out(in.size());
    Work work = group.iallreduce(in, out, {.algorithm = "ring"});
    const auto deadline = Deadline::after(20s);
    while (!work.test()) expect(!deadline.expired());
    expect(out.back() == 3);
  });
}

TEST_CASE("async: a Work of nothing has ended", "[group][async]") {
  Work work;
  work.wait();
  CHECK(work.wait_for(1ms));
  CHECK(work.test());
  CHECK(work.source() == -1);
}

TEST_CASE("async: copies of a Work mean the same operation", "[group][async]") {
  threads_on_each_backend(2, [](Group& group) {
    std::vector<int> value{group.rank()};
    Work work = group.rank() == 0 ? group.irecv(value, 1) : group.isend(value, 0);
    Work copy = work;
    copy.wait();
    expect(work.test());
    expect(work.source() == (group.rank() == 0 ? 1 : -1) && copy.source() == work.source());
  });
}

TEST_CASE("async: the same call again is an operation of its own, whatever became of the Work of the last",
          "[group][async]") {
  threads_on_each_backend(3, [](Group& group) {
    std::vector<int> in(5), out(in.size()), other(in.size());
    std::vector<Work> kept;
    for (int round = 1; round <= 40; ++round) {
      std::fill(in.begin(), in.end(), round);
      Work work = group.iallreduce(in, out);
      while (round % 4 == 0 && !work.test()) {
      }
      work.wait();
      expect(out.front() == 3 * round && out.back() == 3 * round);
      if (round % 3 == 0) kept.push_back(work);
      std::fill(in.begin(), in.end(), -round);
      if (round % 5 != 0) continue;
      group.allreduce(in, out);
      expect(out.front() == -3 * round);
    }
    for (Work& work : kept) expect(work.test());
    // Dropped at once: the next one may find it in flight.
    std::fill(in.begin(), in.end(), 7);
    for (int round = 0; round < 20; ++round) {
      static_cast<void>(group.iallreduce(in, out));
      Work work = group.iallreduce(in, other);
      if (round % 2 == 0) work.wait();
    }
    group.barrier();
    expect(out.back() == 21 && other.back() == 21);
  });
}

TEST_CASE("async: a backend's own blocking algorithm lets what is in flight end first", "[group][async]") {
  threads_on_each_backend(3, [](Group& group) {
    if (group.backend() != "gloo") return;  // the one with algorithms of its own
    const int n = group.size(), next = (group.rank() + 1) % n, previous = (group.rank() + n - 1) % n;
    for (int round = 0; round < 20; ++round) {
      std::vector<int> in(20000, 1), out(in.size()), data(5000, group.rank()), got(30000), sent(30000, group.rank());
      Work reduced = group.iallreduce(in, out, {.algorithm = round % 2 == 0 ? "ring" : "mst"});
      Work send = group.isend(sent, next);
      group.allreduce(data, {.algorithm = "gloo_ring"});
      Work recv = group.irecv(got, previous);
      group.barrier({.algorithm = "gloo_dissemination"});
      recv.wait();
      send.wait();
      reduced.wait();
      expect(data.back() == n * (n - 1) / 2 && out.back() == n && got.back() == previous);
    }
    std::vector<int> in(3), out(3);
    expect_error(ErrorCode::invalid_argument, "asynchronous calls need a plan",
                 [&] { std::ignore = group.iallreduce(in, out, {.algorithm = "gloo_ring"}); });
    group.barrier();
  });
}

TEST_CASE("async: a blocking call that lets an earlier one end first is told of once that has", "[group][async]") {
  threads_on_each_backend(2, [](Group& group, Context& context) {
    if (group.backend() != "gloo") return;
    const RankRecord& first = context.spec().control->record(0);
    const auto waits_in = [&](std::uint64_t call) {
      const RankActivity activity = first.read();
      return activity.sequence == call && activity.state == RankActivity::State::waiting;
    };
    std::vector<int> in(3, 1), out(3), data(3, 1);
    if (group.rank() == 1) expect(soon([&] { return waits_in(1); }));
    Work work = group.iallreduce(in, out);
    if (group.rank() == 1) {
      work.wait();
      expect(soon([&] { return waits_in(2); }));
    }
    group.allreduce(data, {.algorithm = "gloo_ring"});
    work.wait();
  });
}

// ---- Ends

TEST_CASE("async ends: a dropped Work still completes on the peers", "[group][async]") {
  threads_on_each_backend(3, [](Group& group, Context& context) {
    std::vector<int> in(50000, 1), out(in.size());
    if (group.rank() == 0) {
      std::ignore = group.iallreduce(in, out, {.algorithm = "ring"});
      std::ignore = group.isend(in, 1);
      group.barrier();  // a call that gives it time
    } else {
      Work work = group.iallreduce(in, out, {.algorithm = "ring"});
      if (group.rank() == 1) {
        std::vector<int> got(in.size());
        group.recv(got, 0);
        expect(got == in);
      }
      group.barrier();
      work.wait();
      expect(out.back() == 3);
    }
    context.destroy_group("default");
  });
}

TEST_CASE("async ends: destroying the group gives what was dropped the time to end", "[group][async]") {
  threads_on_each_backend(3, [](Group& group, Context& context) {
    std::vector<int> in(50000, 1), out(in.size());
    Work work = group.iallreduce(in, out, {.algorithm = "ring"});
    if (group.rank() == 0)
      context.destroy_group("default");
    else
      work.wait();
    expect(out.back() == 3);
    work.wait();  // also after the group has gone
    expect(work.test() && work.wait_for(1ms));
  });
}

TEST_CASE("async ends: destroying a group with operations that cannot end takes seconds, and the peers learn of it",
          "[group][async]") {
  const auto judge = [](const std::vector<Outcome>& outcomes) {
    CHECK(outcomes[0].good);
    CHECK(outcomes[0].seconds < kPromptSeconds);
    for (const std::size_t peer : {1u, 2u}) {
      const auto code = outcomes[peer].code;
      CHECK((code == ErrorCode::aborted || code == ErrorCode::peer_lost || code == ErrorCode::mismatch));
      CHECK(outcomes[peer].seconds < kPromptSeconds);
    }
  };
  threads_on_each_backend(3, judge, [](int rank, Context& context, const std::string& backend) {
    // What a rank gives its dropped operations is its timeout, or a few seconds.
    const Duration timeout = rank == 0 ? Duration(2s) : Duration(20s);
    Group group = context.init_group({.rank = rank, .world_size = 3, .backend_name = backend, .timeout = timeout});
    std::vector<int> in(50000, 1), out(in.size());
    if (rank == 0) {
      std::vector<int> never(10);
      Work work = group.iallreduce(in, out);
      std::ignore = group.irecv(never, 1);
      context.destroy_group("default");
      for (int again = 0; again < 2; ++again) expect(error_of([&] { work.wait(); }).code() == ErrorCode::aborted);
      expect(error_of([&] { work.test(); }).code() == ErrorCode::aborted);
    } else {
      group.recv(in, 0);
    }
  });
}

TEST_CASE("async ends: a Work outlives the handles of its group, and its context", "[group][async]") {
  const auto body = [](int rank, Context& context, const std::string& backend) {
    std::vector<int> in(50000, 1), first(in.size()), second(in.size()), never(5);
    Work a, b, unfinished;
    {
      Context own(context.spec());
      {
        Group group = own.init_group({.rank = rank, .world_size = 2, .backend_name = backend, .timeout = Duration(2s)});
        a = group.iallreduce(in, first);
      }
      a.wait();
      expect(first.back() == 2);
      Group group = own.group("default");
      b = group.iallreduce(in, second);
      b.wait();
      unfinished = group.irecv(never, 1 - rank);
    }
    a.wait();
    b.wait();
    expect(second.back() == 2);
    for (int again = 0; again < 2; ++again) {
      const auto code = error_of([&] { unfinished.wait(); }).code();
      expect(code == ErrorCode::aborted || code == ErrorCode::peer_lost);
    }
  };
  threads_on_each_backend(2, check_good, body, {.control_page = false});
}

TEST_CASE("async ends: an error surfaces in every wait, and every time", "[group][async]") {
  threads_on_each_backend(4, all_end({.code = ErrorCode::mismatch, .rank = 2, .promptly = true}), [&](Group& group) {
    const int rank = group.rank();
    std::vector<int> in(rank == 2 ? 2001u : 2000u, 1), out(in.size()), other(10), more(10);
    Work odd = group.iallreduce(in, out);
    std::ignore = group.ibroadcast(other);  // dropped: it must not hide the others' error
    Work last = group.irecv(more, (rank + 1) % 4);
    expect(!last.error() && !Work().error());
    std::optional<Error> first;
    for (int again = 0; again < 2; ++again) {
      for (Work* work : {&odd, &last}) {
        const Error error = error_of([&] { work->wait(); });
        if (!first) first = error;
        expect(error.code() == first->code() && error.message() == first->message(), error.what());
      }
      expect(error_of([&] { odd.test(); }).code() == first->code());
      expect(error_of([&] { odd.wait_for(1s); }).code() == first->code());
    }
    for (const Work* work : {&odd, &last}) expect(work->error() && work->error()->message() == first->message());
    expect_error(ErrorCode::aborted, first->message(), [&] { group.barrier(); });
    throw *first;
  });
}

TEST_CASE("async ends: allreduce on one rank and iallreduce on the others is a mismatch that names it",
          "[group][async]") {
  const Judge judge = all_end({.code = ErrorCode::mismatch, .rank = 1, .says = "iallreduce", .promptly = true});
  threads_on_each_backend(4, judge, [](Group& group) {
    std::vector<int> in(10, 1), out(in.size());
    if (group.rank() == 1)
      group.allreduce(in, out);
    else
      group.iallreduce(in, out).wait();
  });
}

TEST_CASE("async ends: the timeout of a wait counts from the wait, and breaks the group", "[group][async]") {
  threads_on_each_backend(2, [](Group& group, Context& context) {
    if (group.rank() == 1) return (void)context.spec().store->wait_for("timed out", 20s);
    std::vector<int> in(10, 1), out(in.size());
    Work work = group.iallreduce(in, out, {.timeout = 300ms});
    expect(!work.wait_for(500ms));  // longer than the operation's timeout, and not the end of it
    expect(work.overdue(500ms).rank() == 1);
    const Error error = error_of([&] { work.wait(); });
    expect(error.code() == ErrorCode::timeout && error.rank() == 1, error.what());
    expect(error_of([&] { work.wait(); }).code() == ErrorCode::timeout);
    context.spec().store->set("timed out", "");
  });
}

TEST_CASE("async ends: a call that was made before says as much when it fails", "[group][async]") {
  threads_on_each_backend(2, [](Group& group, Context& context) {
    std::vector<int> in(10, 1), out(in.size());
    for (int round = 0; round < 3; ++round) group.iallreduce(in, out).wait();
    if (group.rank() == 1) return (void)context.spec().store->wait_for("timed out", 20s);
    Work work = group.iallreduce(in, out, {.timeout = 300ms});
    const Error error = error_of([&] { work.wait(); });
    expect(error.code() == ErrorCode::timeout && error.rank() == 1, error.what());
    expect(std::string(error.what()).find("iallreduce of 10 int32, sum") != std::string::npos, error.what());
    expect(std::string(error.what()).find("(operation 4)") != std::string::npos, error.what());
    context.spec().store->set("timed out", "");
  });
}

}  // namespace
}  // namespace col::test

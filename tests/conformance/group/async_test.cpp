// Asynchronous operations: many at once, waited for in any order, dropped, outlived, failing.
#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>

#include "conformance/group/fleet.hpp"
#include "conformance/group/worlds.hpp"

using col::ErrorCode;
using col::Group;
using col::Work;
using col::test::error_of;
using col::test::expect;
using col::test::threads_on_each_backend;
using namespace std::chrono_literals;

namespace {

// Every kind of flight three times, from empty to longer than any channel buffers, waited for in an order that differs
// between the ranks.
void many_in_flight(Group& group, unsigned seed) {
  std::vector<std::unique_ptr<col::test::Flight>> flights;
  std::vector<std::pair<Work, const col::test::Flight*>> works;
  int salt = 0;
  for (const std::size_t count : {0u, 7u, 30000u}) {
    for (int kind = 0; kind < col::test::kFlightKinds; ++kind) {
      flights.push_back(col::test::launch(group, kind, count, ++salt));
      for (const Work& work : flights.back()->works) works.emplace_back(work, flights.back().get());
    }
  }
  std::shuffle(works.begin(), works.end(), std::mt19937(seed + static_cast<unsigned>(group.rank())));
  for (auto& [work, flight] : works) {
    work.wait();
    expect(work.test(), flight->what);
  }
  for (const auto& flight : flights) col::test::expect_arrived(*flight);
}

}  // namespace

TEST_CASE("async: each i-form gives what the collective promises", "[group][async]") {
  for (const int n : {1, 2, 5}) {
    threads_on_each_backend(n, [](Group& group, col::Context&) {
      for (int kind = 0; kind < col::test::kFlightKinds; ++kind) {
        if (kind == 17 && group.size() == 1) continue;  // from any rank, and none is there
        const auto flight = col::test::launch(group, kind, 100, kind);
        for (Work work : flight->works) work.wait();
        col::test::expect_arrived(*flight);
      }
    });
  }
}

TEST_CASE("async: many in flight, waited for in different orders, as threads", "[group][async]") {
  const unsigned seed = std::random_device()();
  INFO("seed " << seed);
  for (const int n : {2, 3, 4})
    threads_on_each_backend(n, [&](Group& group, col::Context&) { many_in_flight(group, seed); });
}

TEST_CASE("async: many in flight, waited for in different orders, as processes", "[group][async]") {
  const unsigned seed = std::random_device()();
  INFO("seed " << seed);
  col::test::processes_on_each_backend(3, [&](Group& group, col::Context&) { many_in_flight(group, seed); });
}

TEST_CASE("async: blocking collectives in between keep their place in the order", "[group][async]") {
  threads_on_each_backend(3, [](Group& group, col::Context&) {
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
  threads_on_each_backend(2, [&](Group& group, col::Context&) {
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
  threads_on_each_backend(2, [](Group& group, col::Context& context) {
    std::vector<int> in(20000, group.rank() + 1), out(in.size());
    if (group.rank() == 0) {
      Work work = group.iallreduce(in, out);
      expect(!work.wait_for(30ms));
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
  threads_on_each_backend(3, [](Group& group, col::Context&) {
    std::vector<int> in(40000, 1), out(in.size());
    Work work = group.iallreduce(in, out, {.algorithm = "ring"});
    const auto deadline = col::Deadline::after(20s);
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
  threads_on_each_backend(2, [](Group& group, col::Context&) {
    std::vector<int> value{group.rank()};
    Work work = group.rank() == 0 ? group.irecv(value, 1) : group.isend(value, 0);
    Work copy = work;
    copy.wait();
    expect(work.test());
    expect(work.source() == (group.rank() == 0 ? 1 : -1) && copy.source() == work.source());
  });
}

TEST_CASE("async: a backend's own blocking algorithm lets what is in flight end first", "[group][async]") {
  for (const std::string& backend : col::test::usable_backends()) {
    if (backend != "gloo") continue;  // the one with algorithms of its own
    const auto body = [](Group& group, col::Context&) {
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
      const auto error = error_of([&] { std::ignore = group.iallreduce(in, out, {.algorithm = "gloo_ring"}); });
      expect(error.code() == ErrorCode::invalid_argument, error.what());
      expect(error.message().find("asynchronous calls need a plan") != std::string::npos, error.what());
      group.barrier();
    };
    const auto outcomes = col::test::run_threads(3, col::test::joined(3, backend, body));
    INFO(col::test::show(outcomes));
    CHECK(col::test::all_good(outcomes));
  }
}

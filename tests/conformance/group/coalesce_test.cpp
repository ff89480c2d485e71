// Calls that a scope collects and starts together, on groups that move host memory: <col/coalescing.hpp>.
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <col/col.hpp>

#include "conformance/group/fleet.hpp"
#include "conformance/group/worlds.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

using Flights = std::vector<std::unique_ptr<Flight>>;

// One of every collective.
Flights launch_all(Group& group, std::size_t count, int salt) {
  Flights flights;
  for (int kind = 0; kind < kFlightKinds - 3; ++kind) flights.push_back(launch(group, kind, count, salt + kind));
  return flights;
}

TEST_CASE("coalesce: every collective gives what it gives alone", "[group][coalesce]") {
  for (const int n : {1, 2, 5}) {
    threads_on_each_backend(n, [](Group& group) {
      for (const std::size_t count : {0u, 100u, 30000u}) {
        Coalescing scope = group.coalesce();
        const Flights flights = launch_all(group, count, 3);
        Work all = scope.end();
        all.wait();
        expect(all.test() && all.has_ended(), "the whole");
        for (const auto& flight : flights) {
          for (Work work : flight->works) expect(work.test(), flight->what);
          expect_arrived(*flight);
        }
        group.barrier();
      }
    });
  }
}

TEST_CASE("coalesce: each call can be waited for by itself, and the whole a little at a time", "[group][coalesce]") {
  threads_on_each_backend(3, [](Group& group) {
    Coalescing scope = group.coalesce();
    const Flights flights = launch_all(group, 5000, 1);
    Work all = scope.end();
    for (auto flight = flights.rbegin(); flight != flights.rend(); ++flight) {
      for (Work work : (*flight)->works) work.wait();
      expect_arrived(**flight);
    }
    for (const Deadline deadline = Deadline::after(20s); !all.wait_for(10ms);)
      expect(!deadline.expired(), "the whole does not end");
    bool told = false;
    all.then([&told](const std::optional<Error>& error) { told = !error; }).wait();
    expect(told, "a function for the whole");
  });
}

TEST_CASE("coalesce: calls from before the scope, and on other groups, are as always", "[group][coalesce]") {
  threads_on_each_backend(3, [](Group& group, Context& context) {
    Group other = join_another(context, "other", group);
    std::vector<int> before(100, 1), inside(100, 2), beside(100, 3), there(100, 4);
    Work earlier = group.iallreduce(before, before);
    Coalescing scope = group.coalesce();
    Work collected = group.iallreduce(inside, inside);
    other.allreduce(beside);
    Coalescing second = other.coalesce();
    Work of_other = other.iallreduce(there, there);
    earlier.wait();
    expect(before.back() == 3 && beside.back() == 9, "what is not collected");
    expect(inside.back() == 2 && there.back() == 4 && !collected.has_ended() && !of_other.has_ended(),
           "nothing begins");
    scope.end().wait();
    expect(inside.back() == 6 && there.back() == 4 && !of_other.has_ended(), "the first scope");
    second.end().wait();
    expect(there.back() == 12, "the second scope");
  });
}

TEST_CASE("coalesce: what a scope does not take is refused, and the scope goes on", "[group][coalesce]") {
  threads_on_each_backend(2, [](Group& group) {
    std::vector<int> data(10, 1), more(10, 1);
    {
      Coalescing scope = group.coalesce();
      Work collected = group.iallreduce(data, data);
      const std::string open = "a scope of coalesce() is open";
      const auto refused = [&](auto call) { expect_error(ErrorCode::invalid_argument, open, call); };
      refused([&] { group.allreduce(more); });
      refused([&] { group.barrier(); });
      refused([&] { group.send(more, 1 - group.rank()); });
      refused([&] { (void)group.isend(more, 1 - group.rank()); });
      refused([&] { (void)group.alloc(64); });
      refused([&] { (void)group.dup(); });
      refused([&] { (void)group.subgroup(std::vector<int>{0, 1}, "both"); });
      refused([&] { (void)group.coalesce(); });
      const std::string part = "is part of a scope of coalesce() that has not ended";
      expect_error(ErrorCode::invalid_argument, part, [&] { collected.wait(); });
      expect_error(ErrorCode::invalid_argument, part, [&] { (void)collected.wait_for(1ms); });
      expect_error(ErrorCode::invalid_argument, part, [&] { (void)collected.test(); });
      expect_error(ErrorCode::invalid_argument, part, [&] { collected.wait(Stream()); });
      expect_error(ErrorCode::invalid_argument, part, [&] { (void)collected.then([](const auto&) {}); });
      expect_error(ErrorCode::invalid_argument, "", [&] { (void)group.ibroadcast(more, {.root = 7}); });
      scope.end().wait();
      expect_error(ErrorCode::invalid_argument, "has ended before", [&] { (void)scope.end(); });
      expect(data.back() == 2 && more.back() == 1, "only what was collected");
    }
    Group child = group.dup();
    child.allreduce(more);
    expect(more.back() == 2 && child.name() == std::string(group.name()) + "/dup1", "the refused dup() left no trace");
  });
}

TEST_CASE("coalesce: buffers that one call writes and another one uses are refused", "[group][coalesce]") {
  threads_on_each_backend(2, [](Group& group) {
    std::vector<int> data(20, 1), sum(20);
    const TensorView whole(data);
    Coalescing scope = group.coalesce();
    Work first = group.iallreduce(whole.slice(0, 12), whole.slice(0, 12));
    Work second = group.iallreduce(whole.slice(11, 9), TensorView(sum).slice(0, 9));
    expect_error(ErrorCode::invalid_argument, "calls 1 (allreduce) and 2 (allreduce)", [&] { (void)scope.end(); });
    expect(data == std::vector<int>(20, 1), "none is made");
    expect_error(ErrorCode::invalid_argument, "calls 1", [&] { first.wait(); });
    expect_error(ErrorCode::invalid_argument, "calls 1", [&] { second.wait(); });
    // Both may read the same, and an in-place form overlaps itself.
    Coalescing again = group.coalesce();
    (void)group.iallreduce(data, sum);
    std::vector<int> all(40);
    (void)group.iallgather(data, all);
    std::vector<int> blocks(2, group.rank() + 1);
    (void)group.iallgather(TensorView(blocks).slice(static_cast<std::size_t>(group.rank()), 1), blocks);
    again.end().wait();
    expect(sum == std::vector<int>(20, 2) && all == std::vector<int>(40, 1) && blocks == std::vector<int>{1, 2});
  });
}

TEST_CASE("coalesce: a scope that an exception leaves makes none of its calls", "[group][coalesce]") {
  threads_on_each_backend(2, [](Group& group) {
    std::vector<int> data(10, 1), kept(10, 1);
    Work dropped;
    try {
      const Coalescing scope = group.coalesce();
      dropped = group.iallreduce(kept, kept);
      throw std::runtime_error("a mistake of the program");
    } catch (const std::runtime_error&) {
    }
    expect_error(ErrorCode::aborted, "was cancelled, and the call not made", [&] { dropped.wait(); });
    Coalescing cancelled = group.coalesce();
    (void)group.iallreduce(kept, kept);
    cancelled.cancel();
    cancelled.cancel();
    expect_error(ErrorCode::invalid_argument, "has ended before", [&] { (void)cancelled.end(); });
    {
      const Coalescing left = group.coalesce();  // its end starts the call
      (void)group.iallreduce(data, data);
    }
    group.barrier();
    expect(kept.back() == 1 && data.back() == 2, "only the last one");
    Coalescing empty = group.coalesce();
    Work nothing = empty.end();
    nothing.wait();
    group.allreduce(kept);
    expect(kept.back() == 2, "the group is usable");
  });
}

TEST_CASE("coalesce: ranks that do not make the same scopes are told", "[group][coalesce]") {
  const auto differ = [](const auto& body) {
    threads_on_each_backend(2, all_end({.code = ErrorCode::mismatch, .says = "coalesce of 2: iallreduce of 10"}), body);
  };
  differ([](Group& group) {
    std::vector<int> first(10, 1), second(10, 1);
    if (group.rank() == 1) {
      (void)group.iallreduce(first, first);
      group.iallreduce(second, second).wait();
      group.barrier();
      return;
    }
    Coalescing scope = group.coalesce();
    (void)group.iallreduce(first, first);
    (void)group.iallreduce(second, second);
    scope.end().wait();
    group.barrier();
  });
  differ([](Group& group) {
    std::vector<int> first(10, 1), second(10, 1);
    Coalescing scope = group.coalesce();
    (void)group.iallreduce(first, first);
    if (group.rank() == 1) {
      scope.end().wait();
    } else {
      (void)group.iallreduce(second, second);
      scope.end().wait();
    }
    group.barrier();
  });
}

TEST_CASE("coalesce: a scope that is left while another thread uses the group breaks it, and says so",
          "[group][coalesce]") {
  threads_on_each_backend(2, check_good, [](Group& group, Context& context) {
    const std::string key = "lost on " + std::string(group.backend());
    std::vector<float> data(4, 1.0f), message(4, 1.0f);
    if (group.rank() == 1) {
      context.spec().store->wait_for(key, 20s);
      group.send(message, 0);
      expect_error(ErrorCode::aborted, "was left while another thread used the group", [&] { group.barrier(); });
      return;
    }
    Work before = group.irecv(message, 1);
    Coalescing scope = group.coalesce();
    Work one = group.iallreduce(data, data);
    const Deadline deadline = Deadline::after(20s);
    std::optional<Error> error;  // of the other thread
    std::thread other([&] {
      do {
        error.reset();
        try {
          before.wait();
        } catch (const Error& refused) {
          error = refused;  // this one is in a barrier, for a moment
        }
      } while (error && has(error->message(), "in use by another thread") && !deadline.expired());
    });
    while (!has(error_of([&] { group.barrier(); }).message(), "in use by another thread"))
      expect(!deadline.expired(), "the other thread does not come");
    scope.cancel();
    context.spec().store->set(key, "");
    other.join();
    expect(!error, error ? error->what() : "");
    expect_error(ErrorCode::aborted, "was left while another thread used the group", [&] { one.wait(); });
    expect_error(ErrorCode::aborted, "the group broke before", [&] { group.barrier(); });
  });
}

TEST_CASE("coalesce: a group that goes while a scope is open ends its calls", "[group][coalesce]") {
  threads_on_each_backend(2, [](Group& group) {
    std::vector<int> data(10, 1);
    Coalescing scope = group.coalesce();
    Work collected = group.iallreduce(data, data);
    group.destroy();
    expect_error(ErrorCode::aborted, "destroyed before coalesce() ended", [&] { collected.wait(); });
    expect_error(ErrorCode::not_initialized, "", [&] { (void)scope.end(); });
  });
}

}  // namespace
}  // namespace col::test

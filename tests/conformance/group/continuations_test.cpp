// Work::then(), wait_all() and wait_any().
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <col/col.hpp>

#include "conformance/group/worlds.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

using Result = std::promise<std::optional<Error>>;

void add_ints(const void* left, const void* right, void* result, std::size_t count, DType /*dtype*/) {
  for (std::size_t i = 0; i < count; ++i)
    static_cast<int*>(result)[i] = static_cast<const int*>(left)[i] + static_cast<const int*>(right)[i];
}

std::optional<Error> result_of(Result& result) {
  auto future = result.get_future();
  expect(future.wait_for(20s) == std::future_status::ready, "the function was not called");
  return future.get();
}

TEST_CASE("then: runs when the operation has ended, without any call of this rank", "[group][async]") {
  threads_on_each_backend(3, [](Group& group) {
    std::vector<int> in(50000, group.rank() + 1), out(in.size());
    Result result;
    std::thread::id thread;
    Work work = group.iallreduce(in, out, {.algorithm = "ring"});
    Work after = work.then([&](const std::optional<Error>& error) {
      thread = std::this_thread::get_id();
      result.set_value(error);
    });
    expect(!result_of(result));
    expect(out.front() == 6 && out.back() == 6);
    after.wait();
    expect(after.test() && after.wait_for(1ms) && after.has_ended() && !after.error() && after.source() == -1);
    expect(thread != std::this_thread::get_id());
    expect(work.has_ended());
    work.wait();
  });
}

TEST_CASE("then: chains, each after the one before", "[group][async]") {
  threads_on_each_backend(2, [](Group& group) {
    std::vector<int> in(1000, 1), out(in.size());
    std::string order;
    Work last = group.iallreduce(in, out)
                    .then([&](const auto&) { order += std::to_string(out.back()); })
                    .then([&](const auto&) { order += "b"; })
                    .then([&](const auto&) { order += "c"; });
    last.wait();
    expect(order == "2bc", order);
  });
}

TEST_CASE("then: on a Work that has ended, and on one of nothing", "[group][async]") {
  int calls = 0;
  Work().then([&](const std::optional<Error>& error) { calls += error ? 100 : 1; }).wait();
  CHECK(calls == 1);
  threads_on_each_backend(1, [](Group& group) {
    std::vector<int> in(10, 1), out(10);
    bool good = false;
    group.iallreduce(in, out).then([&](const std::optional<Error>& error) { good = !error && out[9] == 1; }).wait();
    expect(good);
  });
}

TEST_CASE("then: may start operations, of its group and of others", "[group][async]") {
  threads_on_each_backend(3, [](Group& group, Context& context) {
    Group other = join_another(context, "other", group);
    std::vector<int> a(2000, 1), b(a.size()), c(a.size()), d(a.size());
    Work second, third;
    Work after = group.iallreduce(a, b).then([&](const auto&) {
      second = group.iallreduce(b, c);
      third = other.iallreduce(b, d);
    });
    after.wait();
    second.wait();
    third.wait();
    expect(b.back() == 3 && c.back() == 9 && d.back() == 9);
  });
}

TEST_CASE("then: must not wait, and is told so", "[group][async]") {
  threads_on_each_backend(2, [](Group& group) {
    std::vector<int> in(100, 1), out(in.size()), more(1, 1);
    std::vector<std::string> said;
    Work work = group.iallreduce(in, out);
    Work other = group.ibarrier();
    Work after = work.then([&](const auto&) {
      for (const auto& call : std::vector<std::function<void()>>{
               [&] { group.allreduce(more); }, [&] { group.barrier(); }, [&] { group.recv(more, 1 - group.rank()); },
               [&] { std::ignore = group.allgather_object(1); }, [&] { std::ignore = group.dup(); }}) {
        const Error error = error_of(call);
        if (error.code() == ErrorCode::invalid_argument) said.push_back(error.message());
      }
    });
    after.wait();
    other.wait();
    expect(said.size() == 5, std::to_string(said.size()));
    for (const std::string& words : said) expect(has(words, "must not wait"), words);
    group.barrier();  // nothing is broken
  });
}

TEST_CASE("then: what the function throws is the error of its Work alone", "[group][async]") {
  threads_on_each_backend(2, [](Group& group) {
    std::vector<int> in(100, 1), out(in.size());
    Work work = group.iallreduce(in, out);
    Work a = work.then([](const auto&) { throw std::runtime_error("no such thing"); });
    Work b = a.then([](const std::optional<Error>& error) {
      if (!error || !has(error->message(), "no such thing")) throw Error(ErrorCode::io, "not told");
    });
    Work c = work.then([](const auto&) { throw Error(ErrorCode::unavailable, "mine"); });
    Work d = work.then([](const auto&) { throw 42; });
    b.wait();
    expect_error(ErrorCode::internal, "then() threw 'no such thing'", [&] { a.wait(); });
    expect_error(ErrorCode::unavailable, "mine", [&] { c.wait(); });
    expect_error(ErrorCode::internal, "no std::exception", [&] { d.wait(); });
    work.wait();
    group.barrier();
  });
}

TEST_CASE("then: gets the error of an operation that fails", "[group][async]") {
  threads_on_each_backend(2, [](Group& group) {
    std::vector<int> in(100, 1), out(in.size());
    Result result;
    Work work = group.rank() == 0 ? group.iallreduce(in, out) : group.iallreduce(in, out, {.op = ReduceOp::max});
    Work after = work.then([&](const std::optional<Error>& error) { result.set_value(error); });
    const auto error = result_of(result);
    expect(error && error->code() == ErrorCode::mismatch, error ? error->what() : "no error");
    after.wait();
    expect(work.error().has_value());
  });
}

TEST_CASE("then: an operation that nobody waits for times out, and names who is missing", "[group][async]") {
  threads_on_each_backend(2, [](Group& group, Context& context) {
    const std::string key = "timed out on " + std::string(group.backend());
    if (group.rank() == 1) {
      context.spec().store->wait_for(key, 20s);
      return;
    }
    std::vector<int> in(100, 1), out(in.size());
    Result result;
    Work work = group.iallreduce(in, out, {.timeout = 300ms});
    std::ignore = work.then([&](const std::optional<Error>& error) { result.set_value(error); });
    const auto error = result_of(result);
    context.spec().store->set(key, "");
    expect(error && error->code() == ErrorCode::timeout && error->rank() == 1, error ? error->what() : "no error");
    expect(has(error->message(), "300ms"), error->what());
    expect_error({.code = ErrorCode::timeout, .rank = 1}, [&] { work.wait(); });
  });
}

TEST_CASE("then: a function that takes long times its waits out, and breaks nothing", "[group][async]") {
  threads_on_each_backend(2, [](Group& group) {
    std::vector<int> in(100, 1), out(in.size());
    std::promise<void> begun, go;
    group.barrier();  // the second is for the function, and for no rank that is late
    Work after =
        group.iallreduce(in, out, {.timeout = 1s}).then([&begun, may_end = go.get_future().share()](const auto&) {
          begun.set_value();
          may_end.wait();
        });
    expect(begun.get_future().wait_for(20s) == std::future_status::ready, "the function runs");
    expect(!after.wait_for(10ms) && !after.test());
    expect_error(ErrorCode::timeout, "the function given to Work::then()", [&] { after.wait(); });
    std::vector<Work> works{after};
    expect_error(ErrorCode::timeout, "the function given to Work::then()", [&] { wait_any(works); });
    go.set_value();
    after.wait();
    group.barrier();
  });
}

TEST_CASE("then: functions run although the group is destroyed, or its handles are gone", "[group][async]") {
  threads_on_each_backend(2, [](Group& group, Context& context) {
    std::vector<int> in(30000, 1), out(in.size()), never(10);
    Result dropped, destroyed;
    {
      Group other = join_another(context, "other", group);
      std::ignore = other.iallreduce(in, out).then([&](const auto& error) { dropped.set_value(error); });
    }
    expect(!result_of(dropped) && out.back() == 2);
    Group last = context.init_group({.name = "last",
                                     .rank = group.rank(),
                                     .world_size = 2,
                                     .backend_name = std::string(group.backend()),
                                     .timeout = 3s});
    std::ignore = last.irecv(never, 1 - group.rank()).then([&](const auto& error) { destroyed.set_value(error); });
    last.destroy();
    const auto error = result_of(destroyed);
    expect(error && error->code() == ErrorCode::aborted, error ? error->what() : "no error");
  });
}

TEST_CASE("then: an empty function is refused", "[group][async]") {
  CHECK_THROWS_AS(Work().then({}), Error);
  try {
    std::ignore = Work().then({});
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::invalid_argument);
  }
}

TEST_CASE("then: many operations of several groups", "[group][async]") {
  threads_on_each_backend(3, [](Group& group, Context& context) {
    Group other = join_another(context, "other", group);
    constexpr int kMany = 100;
    std::vector<std::vector<int>> in, out;
    for (int i = 0; i < kMany; ++i) {
      in.emplace_back(static_cast<std::size_t>(10 * i), i);
      out.emplace_back(in.back().size());
    }
    std::atomic<int> good{0};
    std::vector<Work> works;
    for (std::size_t i = 0; i < kMany; ++i) {
      Group& any = i % 3 == 0 ? other : group;
      works.push_back(any.iallreduce(in[i], out[i]).then([&, i](const std::optional<Error>& error) {
        if (!error && std::ranges::all_of(out[i], [&](int x) { return x == 3 * static_cast<int>(i); })) ++good;
      }));
    }
    expect(wait_all(works));
    expect(good == kMany, std::to_string(good));
  });
}

// Each rank waits, outside of col, for a call of another group: the other rank's part of it is moved on by a thread of
// col that was asked for something else there.
TEST_CASE("then: the calls of other groups move on, too", "[group][async]") {
  processes_on_each_backend(2, check_good, [](Group& group, Context& context) {
    Group other = join_another(context, "other", group);
    std::vector<int> in(1'000'000, 1), first(in.size()), second(in.size());
    Work one = group.iallreduce(in, first), two = other.iallreduce(in, second);
    if (group.rank() == 1) std::swap(one, two);
    for (Work* const work : {&one, &two}) {
      Result result;
      std::ignore = work->then([&](const std::optional<Error>& error) { result.set_value(error); });
      expect(!result_of(result));
    }
    expect(first.back() == 2 && second.back() == 2);
  });
}

// ---- Several Works

TEST_CASE("wait_all: ends with the last, whatever the groups", "[group][async]") {
  threads_on_each_backend(3, [](Group& group, Context& context) {
    Group other = join_another(context, "other", group);
    std::vector<int> in(20000, 1), a(in.size()), b(in.size()), c(in.size());
    std::vector<Work> works{group.iallreduce(in, a), other.iallreduce(in, b), Work(), group.iallreduce(in, c)};
    if (group.rank() == 1) std::ranges::reverse(works);
    expect(wait_all(works, 20s));
    expect(a.back() == 3 && b.back() == 3 && c.back() == 3);
    expect(wait_all(works) && wait_all({}) && wait_all(works, 1ns));
  });
}

TEST_CASE("wait_all: gives up after its budget, and breaks nothing", "[group][async]") {
  threads_on_each_backend(2, [](Group& group, Context& context) {
    const std::string key = "gave up on " + std::string(group.backend());
    std::vector<int> in(100, 1), a(in.size()), b(in.size());
    if (group.rank() == 1) context.spec().store->wait_for(key, 20s);
    std::vector<Work> works{group.iallreduce(in, a), group.iallreduce(in, b)};
    if (group.rank() == 0) {
      expect(!wait_all(works, 20ms));
      expect(!wait_any(works, 20ms));
      context.spec().store->set(key, "");
    }
    expect(wait_all(works));
    expect(a.back() == 2 && b.back() == 2);
  });
}

TEST_CASE("wait_all: throws the first error once all have ended", "[group][async]") {
  threads_on_each_backend(2, [](Group& group) {
    Work bad = group.ibarrier().then([](const auto&) { throw Error(ErrorCode::io, "first"); });
    Work worse = group.ibarrier().then([](const auto&) { throw Error(ErrorCode::io, "second"); });
    std::atomic<bool> ended{false};
    Work good = group.ibarrier().then([&](const auto&) { ended = true; });
    std::vector<Work> works{bad, worse, good};
    expect_error(ErrorCode::io, "first", [&] { wait_all(works); });
    expect(ended);
  });
}

TEST_CASE("wait_any: returns the one that has ended", "[group][async]") {
  threads_on_each_backend(2, [](Group& group) {
    const int other = 1 - group.rank();
    std::vector<std::vector<int>> got(5, std::vector<int>(3000));
    std::vector<Work> works;
    for (int tag = 0; tag < 5; ++tag)
      works.push_back(group.irecv(got[static_cast<std::size_t>(tag)], other, {.tag = tag}));
    // Each message is sent once the one before has come, in an order of its own.
    for (const int tag : {3, 0, 4, 1, 2}) {
      const std::vector<int> data(3000, tag);
      Work sent = group.isend(data, other, {.tag = tag});
      const auto place = wait_any(works);
      expect(place == static_cast<std::size_t>(tag), std::to_string(place.value_or(99)));
      expect(got[static_cast<std::size_t>(tag)].back() == tag);
      // What has ended would be returned again.
      expect(wait_any(works) == place);
      sent.wait();
      works[static_cast<std::size_t>(tag)] = group.irecv(got[static_cast<std::size_t>(tag)], other, {.tag = 100 + tag});
      group.barrier();
    }
    for (int tag = 0; tag < 5; ++tag) group.isend(got[0], other, {.tag = 100 + tag}).wait();
    expect(wait_all(works));
  });
}

TEST_CASE("wait_any: times out with the shortest timeout, and names who is missing", "[group][async]") {
  threads_on_each_backend(2, [](Group& group, Context& context) {
    const std::string key = "timed out on " + std::string(group.backend());
    if (group.rank() == 1) {
      context.spec().store->wait_for(key, 20s);
      return;
    }
    std::vector<int> a(10), b(10);
    std::vector<Work> works{group.irecv(a, 1), group.irecv(b, 1, {.timeout = 300ms})};
    expect_error({.code = ErrorCode::timeout, .rank = 1, .says = "300ms"}, [&] { wait_any(works); });
    context.spec().store->set(key, "");
  });
}

TEST_CASE("wait_any: an empty list is refused", "[group][async]") {
  try {
    wait_any({});
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::invalid_argument);
  }
}

TEST_CASE("then: runs when the group is destroyed in the middle of another thread's call", "[group][async]") {
  std::atomic<int> ended{0}, seen{0};  // by rank 0, and by rank 1
  threads_on_each_backend(2, [&](Group& group) {
    int value = 0;
    std::vector<int> in(100, 1), out(in.size());
    const auto call = [&](const Op& op) {
      try {
        group.allreduce(in, out, {.op = op});
      } catch (const Error&) {  // whether it can end depends on the backend
      }
    };
    if (group.rank() == 1) {
      call(Op::user(add_ints, true));
      // Its part may be over, and a rank that leaves then is what rank 0 would be told of.
      for (const Deadline deadline = Deadline::after(60s); ended == seen; std::this_thread::yield())
        expect(!deadline.expired(), "rank 0 ends");
      ++seen;
      return;
    }
    Result result;
    Work work = group.irecv(TensorView(&value, 1, DType::int32), 1);  // never sent
    Work after = work.then([&](const std::optional<Error>& error) { result.set_value(error); });
    std::promise<void> inside, destroyed;
    std::jthread other([&] {
      bool first = true;
      call(Op::user(
          [&](auto&&... given) {
            if (std::exchange(first, false)) {
              inside.set_value();
              destroyed.get_future().wait_for(20s);
            }
            add_ints(given...);
          },
          true));
    });
    inside.get_future().wait_for(20s);
    group.destroy();
    destroyed.set_value();
    const std::optional<Error> error = result_of(result);
    expect(error && has(error->message(), "destroyed"), error ? error->what() : "no error");
    after.wait();
    expect(work.has_ended());
    ++ended;
  });
}

TEST_CASE("wait_any: an interrupt leaves nothing for a later error", "[group][async]") {
  std::atomic<int> interrupts{0};  // of the waits below, and not of the making of the group
  threads_on_each_backend(
      2, check_good,
      [&interrupts](Group& group) {
        int value = 0;
        if (group.rank() == 0) {
          Work work = group.irecv(TensorView(&value, 1, DType::int32), 1);
          interrupts = 2;
          for (const auto& wait : std::vector<std::function<void()>>{
                   [&] { std::ignore = wait_any(std::span(&work, 1)); }, [&] { work.then([](auto&&) {}).wait(); }}) {
            bool thrown = false;
            try {
              wait();
            } catch (int) {
              thrown = true;
            }
            expect(thrown && !WaitContext::take_interruption());
          }
          group.barrier();
          work.wait();
        } else {
          group.barrier();
          group.send(TensorView(&value, 1, DType::int32), 0);
        }
      },
      {.adapt = [&interrupts](ContextSpec& spec) {
        if (spec.rank != 0) return;
        spec.interrupt = [&interrupts] {
          if (interrupts > 0 && interrupts-- > 0) throw 7;
        };
      }});
}

TEST_CASE("then: threads that only ask do not race with the next operation", "[group][async]") {
  threads_on_each_backend(2, [](Group& group) {
    std::vector<int> in(10, 1), out(in.size());
    for (int i = 0; i < 200; ++i) {
      Work work = group.iallreduce(in, out);
      // relaxed: they order nothing, so that libcol has to.
      std::atomic<bool> dropped{false}, asked{false};
      std::jthread asker([&dropped, &asked, copy = work]() mutable {
        while (!copy.has_ended() || !dropped.load(std::memory_order_relaxed)) std::this_thread::yield();
        std::ignore = copy.error();
        std::ignore = copy.source();
        copy = {};
        asked.store(true, std::memory_order_relaxed);
      });
      work.wait();
      work = {};
      dropped.store(true, std::memory_order_relaxed);
      while (!asked.load(std::memory_order_relaxed)) std::this_thread::yield();
      group.iallreduce(in, out).wait();  // uses what the first one was kept in again
    }
  });
}

TEST_CASE("a context ends while another thread is in a call of its group", "[group][rest]") {
  threads_on_each_backend(2, [](Group& group, Context& context) {
    ContextSpec spec = context.spec();
    spec.job_id += "second " + std::string(group.backend());
    spec.control = nullptr;  // the first context's, which goes on
    auto second = std::make_unique<Context>(std::move(spec));
    Group other = join_another(*second, "other", group);
    if (group.rank() == 0) {
      std::promise<void> inside;
      std::string said;
      std::jthread thread([&] {
        int value = 0;
        Work work = other.irecv(TensorView(&value, 1, DType::int32), 1);
        inside.set_value();
        said = error_of([&] { work.wait(); }).what();
      });
      inside.get_future().wait_for(20s);
      second.reset();
      thread.join();
      expect(has(said, "destroyed"), said);
      expect(error_of([&] { std::ignore = other.dup(); }).code() == ErrorCode::not_initialized);
    }
    group.barrier();
  });
}

}  // namespace
}  // namespace col::test

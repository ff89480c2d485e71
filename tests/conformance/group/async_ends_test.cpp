// How asynchronous operations end when nobody waits for them, when their group goes, and when they fail.
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>

#include "conformance/group/worlds.hpp"

using col::ErrorCode;
using col::Group;
using col::Work;
using col::test::error_of;
using col::test::expect;
using col::test::threads_on_each_backend;
using namespace std::chrono_literals;

TEST_CASE("async ends: a dropped Work still completes on the peers", "[group][async]") {
  threads_on_each_backend(3, [](Group& group, col::Context& context) {
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
  threads_on_each_backend(3, [](Group& group, col::Context& context) {
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
  for (const std::string& backend : col::test::usable_backends()) {
    const auto outcomes = col::test::run_threads(3, [&](int rank, col::Context& context) {
      // What a rank gives its dropped operations is its timeout, or a few seconds.
      const col::Duration timeout = rank == 0 ? col::Duration(700ms) : col::Duration(20s);
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
    INFO(backend << "\n" << col::test::show(outcomes));
    CHECK(outcomes[0].good);
    CHECK(outcomes[0].seconds < 5);
    for (const std::size_t peer : {1u, 2u}) {
      const auto code = outcomes[peer].code;
      CHECK((code == ErrorCode::aborted || code == ErrorCode::peer_lost || code == ErrorCode::mismatch));
      CHECK(outcomes[peer].seconds < 10);
    }
  }
}

TEST_CASE("async ends: a Work outlives the handles of its group, and its context", "[group][async]") {
  for (const std::string& backend : col::test::usable_backends()) {
    const auto outcomes = col::test::run_threads(
        2,
        [&](int rank, col::Context& context) {
          std::vector<int> in(50000, 1), first(in.size()), second(in.size()), never(5);
          Work a, b, unfinished;
          {
            col::Context own(context.spec());
            {
              Group group = own.init_group(
                  {.rank = rank, .world_size = 2, .backend_name = backend, .timeout = col::Duration(1s)});
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
        },
        {.control_page = false});
    INFO(backend << "\n" << col::test::show(outcomes));
    CHECK(col::test::all_good(outcomes));
  }
}

TEST_CASE("async ends: an error surfaces in every wait, and every time", "[group][async]") {
  for (const std::string& backend : col::test::usable_backends()) {
    const auto outcomes = col::test::run_threads(4, [&](int rank, col::Context& context) {
      Group group = context.init_group({.rank = rank, .world_size = 4, .backend_name = backend});
      std::vector<int> in(rank == 2 ? 2001u : 2000u, 1), out(in.size()), other(10), more(10);
      Work odd = group.iallreduce(in, out);
      std::ignore = group.ibroadcast(other);  // dropped: it must not hide the others' error
      Work last = group.irecv(more, (rank + 1) % 4);
      expect(!last.error() && !Work().error());
      std::optional<col::Error> first;
      for (int again = 0; again < 2; ++again) {
        for (Work* work : {&odd, &last}) {
          const col::Error error = error_of([&] { work->wait(); });
          if (!first) first = error;
          expect(error.code() == first->code() && error.message() == first->message(), error.what());
        }
        expect(error_of([&] { odd.test(); }).code() == first->code());
        expect(error_of([&] { odd.wait_for(1s); }).code() == first->code());
      }
      for (const Work* work : {&odd, &last}) expect(work->error() && work->error()->message() == first->message());
      const col::Error later = error_of([&] { group.barrier(); });
      expect(later.code() == ErrorCode::aborted, later.what());
      expect(later.message().find(first->message()) != std::string::npos, later.what());
      throw *first;
    });
    INFO(backend << "\n" << col::test::show(outcomes));
    for (const auto& outcome : outcomes) {
      CHECK(outcome.code == ErrorCode::mismatch);
      CHECK(outcome.error_rank == 2);
      CHECK(outcome.seconds < 5);
    }
  }
}

TEST_CASE("async ends: allreduce on one rank and iallreduce on the others is a mismatch that names it",
          "[group][async]") {
  for (const std::string& backend : col::test::usable_backends()) {
    const auto outcomes = col::test::run_threads(4, [&](int rank, col::Context& context) {
      Group group = context.init_group({.rank = rank, .world_size = 4, .backend_name = backend});
      std::vector<int> in(10, 1), out(in.size());
      if (rank == 1)
        group.allreduce(in, out);
      else
        group.iallreduce(in, out).wait();
    });
    INFO(backend << "\n" << col::test::show(outcomes));
    for (const auto& outcome : outcomes) {
      CHECK(outcome.code == ErrorCode::mismatch);
      CHECK(outcome.error_rank == 1);
      CHECK(outcome.text.find("iallreduce") != std::string::npos);
      CHECK(outcome.seconds < 5);
    }
  }
}

TEST_CASE("async ends: the timeout of a wait counts from the wait, and breaks the group", "[group][async]") {
  threads_on_each_backend(2, [](Group& group, col::Context& context) {
    if (group.rank() == 1) return (void)context.spec().store->wait_for("timed out", 20s);
    std::vector<int> in(10, 1), out(in.size());
    Work work = group.iallreduce(in, out, {.timeout = 300ms});
    expect(!work.wait_for(500ms));  // longer than the operation's timeout, and not the end of it
    const col::Error error = error_of([&] { work.wait(); });
    expect(error.code() == ErrorCode::timeout && error.rank() == 1, error.what());
    expect(error_of([&] { work.wait(); }).code() == ErrorCode::timeout);
    context.spec().store->set("timed out", "");
  });
}

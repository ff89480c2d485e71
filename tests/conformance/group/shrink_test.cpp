// Going on without ranks that were lost: who is in the smaller group, that it works, and what is said of ranks that
// disagree about it.
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>

#include "conformance/group/backends.hpp"
#include "conformance/group/worlds.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"

using col::ErrorCode;
using col::Group;
using col::test::error_of;
using col::test::expect;
using col::test::Outcome;
using namespace std::chrono_literals;

namespace {

// The ranks that the members of `group` had, in its order.
std::vector<int> members(Group& group, int old_rank) {
  return group.allgather_object(old_rank);
}

// Calls of each kind, against what they must give.
void check_works(Group& group) {
  const int ranks = group.size(), me = group.rank();
  for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{300000}}) {
    std::vector<float> data(count, static_cast<float>(me + 1));
    group.allreduce(data);
    expect(data == std::vector<float>(count, static_cast<float>(ranks * (ranks + 1) / 2)), "allreduce");
  }
  std::vector<int> token{me == ranks - 1 ? 7 : 0};
  group.broadcast(token, {.root = ranks - 1});
  expect(token[0] == 7, "broadcast");
  std::vector<int> from{-1};
  group.sendrecv(std::vector{me}, (me + 1) % ranks, from, (me + ranks - 1) % ranks);
  expect(from[0] == (me + ranks - 1) % ranks, "sendrecv");
  group.iallreduce(token, token).wait();
  expect(token[0] == 7 * ranks, "iallreduce");
  group.barrier();
}

// Calls allreduce until it fails.
col::Error work_until_lost(Group& group, int dies, int at) {
  std::vector<float> data(1000);
  for (int round = 0;; ++round) {
    if (group.rank() == dies && round == at) ::kill(::getpid(), SIGKILL);
    try {
      group.allreduce(data);
    } catch (const col::Error& error) {
      return error;
    }
  }
}

col::Error shrink_error(Group& group, const std::vector<int>& excluded, const std::string& name = "") {
  return error_of([&] { group.shrink(excluded, name); });
}

}  // namespace

TEST_CASE("shrink: ranks are killed one after another, and the others go on each time", "[group]") {
  for (const std::string& backend : col::test::usable_backends()) {
    const auto outcomes = col::test::run_processes(5, [&](int rank, col::Context& context) {
      Group group = context.init_group({.rank = rank, .world_size = 5, .backend_name = backend});
      const col::Error lost = work_until_lost(group, 2, 5);
      expect(lost.code() == ErrorCode::peer_lost && lost.rank() == 2, lost.what());
      Group four = group.shrink(std::array{lost.rank()});
      expect(four.size() == 4 && four.backend() == backend && four.name() == "default/shrink1");
      expect(four.rank() == (rank < 2 ? rank : rank - 1));
      expect(members(four, rank) == std::vector{0, 1, 3, 4});
      check_works(four);
      std::vector<float> data(3);
      const col::Error old = error_of([&] { group.allreduce(data); });
      expect(old.code() == ErrorCode::aborted, "the old group stays broken");
      context.destroy_group("default");
      check_works(four);
      // The first of those that are left, which made the connections of the last meeting.
      const col::Error again = work_until_lost(four, 0, 3);
      expect(again.code() == ErrorCode::peer_lost && again.rank() == 0, again.what());
      Group three = four.shrink(std::array{0}, "three");
      expect(three.name() == "three" && members(three, rank) == std::vector{1, 3, 4});
      check_works(three);
      context.finalize();
    });
    INFO(backend << "\n" << col::test::show(outcomes));
    for (const int rank : {1, 3, 4}) CHECK(outcomes[static_cast<std::size_t>(rank)].good);
    for (const int rank : {0, 2}) CHECK(outcomes[static_cast<std::size_t>(rank)].signal == SIGKILL);
  }
}

TEST_CASE("shrink: one rank is left of two", "[group]") {
  for (const std::string& backend : col::test::usable_backends()) {
    const auto outcomes = col::test::run_processes(2, [&](int rank, col::Context& context) {
      Group group = context.init_group({.rank = rank, .world_size = 2, .backend_name = backend});
      const col::Error lost = work_until_lost(group, 0, 2);
      Group alone = group.shrink(std::array{lost.rank()});
      expect(alone.size() == 1 && alone.rank() == 0);
      std::vector<int> data{5};
      alone.allreduce(data);
      expect(data[0] == 5);
    });
    INFO(backend << "\n" << col::test::show(outcomes));
    CHECK(outcomes[1].good);
  }
}

TEST_CASE("shrink: by agreement, more than once, and the group that it came from goes on", "[group]") {
  col::test::threads_on_each_backend(4, [](Group& group, col::Context&) {
    const int me = group.rank();
    Group part;
    if (me != 1) part = group.shrink(std::array{1});
    if (me == 0 || me == 2) {
      Group two = group.shrink(me == 0 ? std::vector{3, 1} : std::vector{1, 3});  // in any order
      expect(members(two, me) == std::vector{0, 2});
      check_works(two);
    }
    check_works(group);
    if (part) {
      expect(members(part, me) == std::vector{0, 2, 3});
      check_works(part);
    }
  });
}

TEST_CASE("shrink: a group that a mismatch broke goes on with all its ranks", "[group]") {
  col::test::threads_on_each_backend(3, [](Group& group, col::Context&) {
    std::vector<int> data(group.rank() == 1 ? 4U : 3U, 1);
    const col::Error error = error_of([&] { group.allreduce(data); });
    expect(error.code() == ErrorCode::mismatch, error.what());
    Group anew = group.shrink({});
    check_works(anew);
  });
}

TEST_CASE("shrink: ranks that leave out others are told who does, and can try again", "[group]") {
  col::test::threads_on_each_backend(4, [](Group& group, col::Context&) {
    if (group.rank() == 3) return group.barrier();
    const col::Error error = shrink_error(group, group.rank() == 1 ? std::vector{2, 3} : std::vector{3});
    expect(error.code() == ErrorCode::mismatch && error.rank() == 1, error.what());
    const std::string text = error.what();
    expect(text.find("rank 1 is the odd one") != std::string::npos, text);
    expect(text.find("rank 0 leaves out rank 3 for '") != std::string::npos, text);
    expect(text.find("rank 1 leaves out ranks 2, 3 for '") != std::string::npos, text);
    const col::Error named = shrink_error(group, {3}, group.rank() == 2 ? "b" : "a");
    expect(named.code() == ErrorCode::mismatch && named.rank() == 2, named.what());
    Group three = group.shrink(std::array{3});
    check_works(three);
    group.barrier();
  });
}

TEST_CASE("shrink: who waits for a rank that leaves it out is told", "[group]") {
  std::atomic<bool> told = false;
  col::test::threads_on_each_backend(2, [&](Group& group, col::Context&) {
    group.barrier();
    if (group.rank() == 0) told = false;
    group.barrier();
    if (group.rank() == 1) {
      // It need not wait for anybody; when rank 0 was there first, it is told, too.
      std::optional<col::Error> error;
      try {
        group.shrink(std::array{0});
      } catch (const col::Error& thrown) {
        error = thrown;
      }
      expect(!error || error->code() == ErrorCode::mismatch);
      for (const col::Deadline deadline = col::Deadline::after(20s); !told;)
        expect(!deadline.expired(), "rank 0 is not told");
      return;
    }
    const col::Error error = shrink_error(group, {});
    told = true;
    expect(error.code() == ErrorCode::mismatch, error.what());
    const std::string text = error.what();
    expect(text.find("rank 0 leaves out nobody") != std::string::npos, text);
    expect(text.find("rank 1 leaves out rank 0") != std::string::npos, text);
  });
}

TEST_CASE("shrink: a rank that does not come is named, and all can try again", "[group]") {
  std::atomic<int> told = 0;
  const auto outcomes = col::test::run_threads(3, [&](int rank, col::Context& context) {
    Group group = context.init_group({.name = "g", .rank = rank, .world_size = 3, .timeout = 700ms});
    if (rank == 2) {
      const col::Deadline deadline = col::Deadline::after(20s);
      while (told < 2) expect(!deadline.expired(), "the others do not give up");
    }
    const col::Error error = shrink_error(group, {});
    ++told;
    // Who comes too late learns that the others have given up.
    expect(error.code() == ErrorCode::timeout && error.rank() == 2, error.what());
    expect(std::string(error.what()).find("rank 2 to shrink group 'g'") != std::string::npos, error.what());
    for (const col::Deadline deadline = col::Deadline::after(20s); told < 3;) expect(!deadline.expired(), "rank 2");
    Group same = group.shrink({});
    check_works(same);
  });
  INFO(col::test::show(outcomes));
  CHECK(col::test::all_good(outcomes));
}

TEST_CASE("shrink: another rank that has died is named, and can be left out as well", "[group]") {
  for (const std::string& backend : col::test::usable_backends()) {
    const auto outcomes = col::test::run_processes(4, [&](int rank, col::Context& context) {
      Group group = context.init_group({.rank = rank, .world_size = 4, .backend_name = backend});
      group.barrier();
      if (rank == 1 || rank == 3) ::kill(::getpid(), SIGKILL);
      const col::Error error = shrink_error(group, {3});
      expect(error.code() == ErrorCode::peer_lost && error.rank() == 1, error.what());
      Group two = group.shrink(std::array{1, 3});
      expect(members(two, rank) == std::vector{0, 2});
      check_works(two);
      context.finalize();
    });
    INFO(backend << "\n" << col::test::show(outcomes));
    for (const int rank : {0, 2}) {
      CHECK(outcomes[static_cast<std::size_t>(rank)].good);
      CHECK(outcomes[static_cast<std::size_t>(rank)].seconds < 10);
    }
  }
}

TEST_CASE("shrink: what is wrong with a call is said before anything happens", "[group]") {
  col::test::threads_on_each_backend(3, [](Group& group, col::Context&) {
    const int me = group.rank();
    const auto refused = [&](const std::vector<int>& excluded, const std::string& words) {
      const col::Error error = shrink_error(group, excluded);
      expect(error.code() == ErrorCode::invalid_argument, error.what());
      expect(std::string(error.what()).find(words) != std::string::npos, error.what());
    };
    refused({me}, fmt::format("this is rank {}, which is to be left out", me));
    refused({3}, "shrink: rank");
    refused({-1}, "shrink: rank");
    refused({(me + 1) % 3, (me + 1) % 3}, "listed twice");
    // Taken on one rank: said on all.
    std::optional<Group> other;
    if (me == 1) other = col::Context::current().init_group({.name = "taken"});
    const col::Error taken = shrink_error(group, {}, "taken");
    expect(taken.code() == ErrorCode::already_initialized && taken.rank() == 1, taken.what());
    Group same = group.shrink({}, "free");
    check_works(same);
  });
}

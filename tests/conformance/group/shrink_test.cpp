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

#include "conformance/group/worlds.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

// The ranks that the members of `group` had, in its order.
std::vector<int> members(Group& group, int old_rank) {
  return group.allgather_object(old_rank);
}

// Calls allreduce until a rank has died.
void work_until_lost(Group& group, int dies, int at) {
  std::vector<float> data(1000);
  expect_error({.code = ErrorCode::peer_lost, .rank = dies}, [&] {
    for (int round = 0;; ++round) {
      if (group.rank() == dies && round == at) ::kill(::getpid(), SIGKILL);
      group.allreduce(data);
    }
  });
}

Error expect_no_shrink(Group& group, const Ending& want, const std::vector<int>& excluded,
                       const std::string& name = "") {
  return expect_error(want, [&] { group.shrink(excluded, name); });
}

TEST_CASE("shrink: ranks are killed one after another, and the others go on each time", "[group]") {
  const auto judge = [](const std::vector<Outcome>& outcomes) {
    for (const int rank : {1, 3, 4}) CHECK(outcomes[static_cast<std::size_t>(rank)].good);
    for (const int rank : {0, 2}) CHECK(outcomes[static_cast<std::size_t>(rank)].signal == SIGKILL);
  };
  processes_on_each_backend(5, judge, [](Group& group, Context& context) {
    const int rank = group.rank();
    work_until_lost(group, 2, 5);
    Group four = group.shrink(std::array{2});
    expect(four.size() == 4 && four.backend() == group.backend() && four.name() == "default/shrink1");
    expect(four.rank() == (rank < 2 ? rank : rank - 1));
    expect(members(four, rank) == std::vector{0, 1, 3, 4});
    check_works(four);
    std::vector<float> data(3);
    expect_error(ErrorCode::aborted, "", [&] { group.allreduce(data); });  // the old group stays broken
    context.destroy_group("default");
    check_works(four);
    // The first of those that are left, which made the connections of the last meeting.
    work_until_lost(four, 0, 3);
    Group three = four.shrink(std::array{0}, "three");
    expect(three.name() == "three" && members(three, rank) == std::vector{1, 3, 4});
    check_works(three);
    context.finalize();
  });
}

TEST_CASE("shrink: one rank is left of two", "[group]") {
  const auto judge = [](const std::vector<Outcome>& outcomes) { CHECK(outcomes[1].good); };
  processes_on_each_backend(2, judge, [](Group& group) {
    work_until_lost(group, 0, 2);
    Group alone = group.shrink(std::array{0});
    expect(alone.size() == 1 && alone.rank() == 0);
    std::vector<int> data{5};
    alone.allreduce(data);
    expect(data[0] == 5);
  });
}

TEST_CASE("shrink: by agreement, more than once, and the group that it came from goes on", "[group]") {
  threads_on_each_backend(4, [](Group& group) {
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
  threads_on_each_backend(3, [](Group& group) {
    std::vector<int> data(group.rank() == 1 ? 4U : 3U, 1);
    expect_error(ErrorCode::mismatch, "", [&] { group.allreduce(data); });
    Group anew = group.shrink({});
    check_works(anew);
  });
}

TEST_CASE("shrink: ranks that leave out others are told who does, and can try again", "[group]") {
  threads_on_each_backend(4, [](Group& group) {
    if (group.rank() == 3) return group.barrier();
    const std::string text =
        expect_no_shrink(group, {.code = ErrorCode::mismatch, .rank = 1, .says = "rank 1 is the odd one"},
                         group.rank() == 1 ? std::vector{2, 3} : std::vector{3})
            .what();
    expect(has(text, "rank 0 leaves out rank 3 for '"), text);
    expect(has(text, "rank 1 leaves out ranks 2, 3 for '"), text);
    expect_no_shrink(group, {.code = ErrorCode::mismatch, .rank = 2}, {3}, group.rank() == 2 ? "b" : "a");
    Group three = group.shrink(std::array{3});
    check_works(three);
    group.barrier();
  });
}

TEST_CASE("shrink: who waits for a rank that leaves it out is told", "[group]") {
  std::atomic<bool> told = false;
  threads_on_each_backend(2, [&](Group& group) {
    group.barrier();
    if (group.rank() == 0) told = false;
    group.barrier();
    if (group.rank() == 1) {
      // It need not wait for anybody; when rank 0 was there first, it is told, too.
      std::optional<Error> error;
      try {
        group.shrink(std::array{0});
      } catch (const Error& thrown) {
        error = thrown;
      }
      expect(!error || error->code() == ErrorCode::mismatch);
      for (const Deadline deadline = Deadline::after(20s); !told;) expect(!deadline.expired(), "rank 0 is not told");
      return;
    }
    const Error error = expect_no_shrink(group, {.code = ErrorCode::mismatch, .says = "rank 0 leaves out nobody"}, {});
    told = true;
    expect(has(error.what(), "rank 1 leaves out rank 0"), error.what());
  });
}

TEST_CASE("shrink: a rank that does not come is named, and all can try again", "[group]") {
  std::atomic<int> told = 0;
  check_good(run_threads(3, [&](int rank, Context& context) {
    Group group = context.init_group({.name = "g", .rank = rank, .world_size = 3, .timeout = 3s});
    if (rank == 2) {
      const Deadline deadline = Deadline::after(20s);
      while (told < 2) expect(!deadline.expired(), "the others do not give up");
    }
    // Who comes too late learns that the others have given up.
    expect_no_shrink(group, {.code = ErrorCode::timeout, .rank = 2, .says = "rank 2 to shrink group 'g'"}, {});
    ++told;
    for (const Deadline deadline = Deadline::after(20s); told < 3;) expect(!deadline.expired(), "rank 2");
    Group same = group.shrink({});
    check_works(same);
  }));
}

TEST_CASE("shrink: another rank that has died is named, and can be left out as well", "[group]") {
  const auto judge = [](const std::vector<Outcome>& outcomes) {
    for (const std::size_t rank : {0u, 2u}) {
      CHECK(outcomes[rank].good);
      CHECK(outcomes[rank].seconds < kPromptSeconds);
    }
  };
  processes_on_each_backend(4, judge, [](Group& group, Context& context) {
    const int rank = group.rank();
    kill_behind_barrier(group, context, {1, 3});
    expect_no_shrink(group, {.code = ErrorCode::peer_lost, .rank = 1}, {3});
    Group two = group.shrink(std::array{1, 3});
    expect(members(two, rank) == std::vector{0, 2});
    check_works(two);
    context.finalize();
  });
}

TEST_CASE("shrink: what is wrong with a call is said before anything happens", "[group]") {
  threads_on_each_backend(3, [](Group& group) {
    const int me = group.rank();
    const auto refused = [&](const std::vector<int>& excluded, const std::string& words) {
      expect_no_shrink(group, {.code = ErrorCode::invalid_argument, .says = words}, excluded);
    };
    refused({me}, fmt::format("this is rank {}, which is to be left out", me));
    refused({3}, "shrink: rank");
    refused({-1}, "shrink: rank");
    refused({(me + 1) % 3, (me + 1) % 3}, "listed twice");
    // Taken on one rank: said on all.
    std::optional<Group> other;
    if (me == 1) other = Context::current().init_group({.name = "taken"});
    expect_no_shrink(group, {.code = ErrorCode::already_initialized, .rank = 1}, {}, "taken");
    Group same = group.shrink({}, "free");
    check_works(same);
  });
}

}  // namespace
}  // namespace col::test

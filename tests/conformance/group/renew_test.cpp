// The next epoch of a group: who is in it, that it works, what ends with the one before, and what is said of calls that
// cannot be.
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>

#include "conformance/group/worlds.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"

namespace col::test {
namespace {

// Calls allreduce until a rank has died, or others have gone to the next epoch because of that.
void work_until_lost(Group& group, const std::vector<int>& dying, int at) {
  std::vector<float> data(1000);
  const bool dies = std::ranges::count(dying, group.rank()) > 0;
  try {
    for (int round = 0;; ++round) {
      if (round == at && dies) ::kill(::getpid(), SIGKILL);
      group.allreduce(data);
    }
  } catch (const Error& error) {
    if (dies) ::kill(::getpid(), SIGKILL);  // another one that dies was a call ahead
    expect(error.is_loss(), error.what());
  }
}

// The end of an epoch, of which the ranks can go on.
template <class Call>
void expect_over(const std::string& says, Call&& call, CallPlace where = CallPlace::here()) {
  const Error error = expect_error(ErrorCode::aborted, says, call, where);
  expect(error.is_loss(), error.what(), where);
}

void expect_facts(const Group& group, std::uint64_t epoch, const std::vector<int>& world_ranks,
                  const std::vector<int>& lost) {
  expect(group.epoch() == epoch, fmt::format("epoch {}", group.epoch()));
  expect(group.ranks() == world_ranks, fmt::format("{} ranks", group.size()));
  expect(group.lost() == lost, fmt::format("{} lost", group.lost().size()));
}

Judge survivors(std::vector<std::size_t> good) {
  return [good = std::move(good)](const std::vector<Outcome>& outcomes) {
    for (const std::size_t rank : good) CHECK(outcomes[rank].good);
  };
}

// Beside the group: all are out of their calls of it.
void meet_beside(Group& group, Context& context) {
  const auto store = make_prefix_store(context.spec().store, fmt::format("beside {}", group.epoch()));
  store->set(std::to_string(group.rank()), "");
  for (int rank = 0; rank < group.size(); ++rank) store->wait_for(std::to_string(rank), kDeadline);
}

TEST_CASE("renew: a rank is killed, then another, and the others go on under the same name", "[group]") {
  processes_on_each_backend(5, survivors({1, 2, 3}), [](Group& group, Context& context) {
    expect(group.epoch() == 0 && group.source() == 0 && group.lost().empty());
    expect(group.newcomers() == std::vector{0, 1, 2, 3, 4});
    const int me = group.rank();
    work_until_lost(group, {4}, 5);
    Group old = group;
    group = group.renew({.progress = me == 2 ? 20U : 10U});
    expect_facts(group, 1, {0, 1, 2, 3}, {4});
    expect(group.name() == "default" && group.rank() == me && group.newcomers().empty());
    expect(group.source() == 2 && group.progress(2) == 20 && group.progress(3) == 10);
    check_works(group);
    expect(context.group("default").epoch() == 1);
    std::vector<float> data(3);
    expect_over("epoch 1 has taken its place", [&] { old.allreduce(data); });
    expect_over("epoch 1 has taken its place", [&] { old.renew(); });
    // The first, which has decided. The others get new numbers.
    work_until_lost(group, {0}, 3);
    group = group.renew();
    expect_facts(group, 2, {1, 2, 3}, {0});
    expect(group.rank() == me - 1);
    check_works(group);
    context.finalize();
  });
}

TEST_CASE("renew: several are killed at once, and one is left", "[group]") {
  processes_on_each_backend(4, survivors({2}), [](Group& group, Context& context) {
    work_until_lost(group, {0, 1, 3}, 2);
    group = group.renew();
    expect_facts(group, 1, {2}, {0, 1, 3});
    check_works(group);
    group = group.renew();
    expect_facts(group, 2, {2}, {});
    check_works(group);
    context.finalize();
  });
}

TEST_CASE("renew: one that is killed in it is left out", "[group]") {
  processes_on_each_backend(5, survivors({0, 2, 4}), [](Group& group, Context& context) {
    work_until_lost(group, {3}, 2);
    if (group.rank() == 1) ::kill(::getpid(), SIGKILL);
    group = group.renew();
    // The first of these deaths may have been all that was known.
    if (group.size() == 4) {
      work_until_lost(group, {}, 0);
      group = group.renew();
    }
    expect(group.size() == 3 && group.ranks() == std::vector{0, 2, 4});
    check_works(group);
    context.finalize();
  });
}

TEST_CASE("renew: a planned leave, with a group that is not broken", "[group]") {
  threads_on_each_backend(4, [](Group& group, Context& context) {
    const int me = group.rank();
    Group row = group.split(me % 2), named = group.subgroup(std::array{0, 1, 2, 3}, "all");
    check_works(named);
    meet_beside(group, context);
    Group old = group;
    group = group.renew({.excluded = std::array{1}});
    const std::string_view says = me == 1 ? "has left the group" : "epoch 1 has taken its place";
    for (Group* ended : {&old, &row, &named}) {
      const Error error = expect_error(ErrorCode::aborted, std::string(says), [&] { ended->barrier(); });
      expect(error.is_loss() == (me != 1), error.what());
    }
    if (me == 1) {
      expect(!group && !Context::current().is_initialized("default") && !Context::current().is_initialized("all"));
      return;
    }
    expect_facts(group, 1, {0, 2, 3}, {1});
    check_works(group);
    // Groups that were made from the old one are made again, under their names.
    named = group.subgroup(std::array{2, 1, 0}, "all");
    expect(named.epoch() == 1);
    check_works(named);
    meet_beside(group, context);
    group = group.renew({});
    expect_facts(group, 2, {0, 2, 3}, {});
    check_works(group);
  });
}

TEST_CASE("renew: calls in flight end, and memory stays", "[group]") {
  threads_on_each_backend(3, [](Group& group, Context& context) {
    const int me = group.rank();
    auto* const shared = static_cast<int*>(alloc(sizeof(int), group));
    *shared = 40 + me;
    // Nobody sends these.
    std::array<int, 4> got{};
    const auto receive = [&](Group& from, int which) {
      return from.irecv(std::span(got).subspan(static_cast<std::size_t>(which), 1), (me + 1) % 3, {.tag = 9});
    };
    Group row = group.dup(), another = group.dup();
    Work work = receive(group, 0), in_row = receive(row, 1), heard = receive(group, 2);
    std::optional<Error> told;
    Work after = heard.then([&](const std::optional<Error>& error) { told = error; });
    std::vector<int> sum{1};
    PreparedCall call = group.prepare({Collective::allreduce, sum, sum}),
                 in_flight = row.prepare({Collective::barrier});
    if (me != 0) in_flight.start();
    std::jthread waits(
        [&] { expect_over("epoch ", [&] { another.recv(std::span(got).subspan(3, 1), (me + 1) % 3, {.tag = 9}); }); });
    meet_beside(group, context);
    Group next = group.renew();
    expect_over("epoch 0 is over", [&] { work.wait(); });
    after.wait();
    expect(told && told->is_loss() && has(told->message(), "makes epoch 1"));
    expect_over("epoch 0 of group 'default', from which this group was made, is over", [&] { in_row.wait(); });
    if (me != 0) expect_over("makes epoch 1", [&] { in_flight.wait(); });
    for (PreparedCall* again : {&call, &in_flight}) expect_over("epoch 1 has taken its place", [&] { again->start(); });
    waits.join();
    expect(*shared == 40 + me);
    check_works(next);
    free(shared);
  });
}

TEST_CASE("join: a process takes the place of one that was killed", "[group]") {
  processes_on_each_backend(4, survivors({0, 3}), [](int rank, Context& context, const std::string& backend) {
    Group group;
    if (rank == 3) {
      group = context.join_group("default");
      expect(group.progress(1) == 5 && group.progress(group.rank()) == 0);
    } else {
      group = context.init_group({.rank = rank, .world_size = 3, .backend_name = backend});
      work_until_lost(group, {2}, 3);
      group = group.renew({.wait = kDeadline, .progress = 5});
    }
    expect_facts(group, 1, {0, 1, 3}, {2});
    expect(group.newcomers() == std::vector{2} && group.source() == 0);
    check_works(group);
    // It is one of them: another one is lost, and nobody waits.
    work_until_lost(group, {1}, 3);
    group = group.renew();
    expect_facts(group, 2, {0, 3}, {1});
    check_works(group);
    context.finalize();
  });
}

TEST_CASE("join: a group grows by those who wait, first come first, and takes the others later", "[group]") {
  threads_on_each_backend(5, [](int rank, Context& context, const std::string& backend) {
    Group group;
    if (rank >= 3) {
      group = context.join_group("default");
    } else {
      group = context.init_group({.rank = rank, .world_size = 3, .backend_name = backend});
      while (!group.renewal_wanted()) continue;
      meet_beside(group, context);
      group = group.renew({.size = 4});
    }
    expect(group.size() == 4 || group.size() == 5);
    if (group.epoch() == 1) {
      expect(group.newcomers() == std::vector{3} && group.lost().empty());
      check_works(group);
      while (!group.renewal_wanted()) continue;
      meet_beside(group, context);
      group = group.renew({.size = 9});
    }
    expect(group.epoch() == 2 && group.size() == 5 && group.newcomers() == std::vector{4});
    check_works(group);
    expect(!group.renewal_wanted());
    meet_beside(group, context);
    // Ranks that have joined go on with new numbers.
    group = group.renew({.excluded = std::array{0, 1}});
    expect(static_cast<bool>(group) == (rank > 1));
    if (group) check_works(group);
  });
}

TEST_CASE("join: one that is killed while it waits, or as it is taken, is not waited for", "[group]") {
  processes_on_each_backend(4, survivors({0, 1, 2}), [](int rank, Context& context, const std::string& backend) {
    Store& store = *context.spec().store;
    if (rank == 3) {
      const std::jthread killer([&] {
        store.wait_for("end", kDeadline);
        ::kill(::getpid(), SIGKILL);
      });
      context.join_group("default");
      return;
    }
    Group group = context.init_group({.rank = rank, .world_size = 3, .backend_name = backend});
    while (!group.renewal_wanted()) continue;
    meet_beside(group, context);
    if (rank == 0) store.set("end", "");
    group = group.renew({.size = 4});
    if (group.size() == 4) {
      work_until_lost(group, {}, 0);
      group = group.renew();
    }
    expect(group.ranks() == std::vector{0, 1, 2}, fmt::format("{} ranks", group.size()));
    check_works(group);
    expect(!group.renewal_wanted());
    context.finalize();
  });
}

TEST_CASE("join: what stands in the way is said", "[group]") {
  threads_on_each_backend(3, [](int rank, Context& context, const std::string& backend) {
    const auto refused = [&](const std::string& name, const Ending& want) {
      expect_error(want, [&] { context.join_group(name, std::chrono::seconds(1)); });
    };
    if (rank == 2) {
      refused("", {.code = ErrorCode::invalid_argument, .says = "a group needs a name"});
      refused("nobody's", {.code = ErrorCode::timeout, .says = "nobody has made a group 'nobody's'"});
      context.spec().store->wait_for("made", kDeadline);
      refused("default", {.code = ErrorCode::timeout, .says = "has 2 ranks, which did not call renew()"});
      expect_error(ErrorCode::invalid_argument, "no store in common", [] { Context({}).join_group("default"); });
      return context.spec().store->set("refused", "");
    }
    Group group = context.init_group({.rank = rank, .world_size = 2, .backend_name = backend});
    group.barrier();
    if (rank == 0) context.spec().store->set("made", "");
    refused("default", {.code = ErrorCode::already_initialized});
    context.spec().store->wait_for("refused", kDeadline);
    // It has taken itself out of the queue.
    expect(!group.renewal_wanted());
    meet_beside(group, context);
    group = group.renew({.size = 3});
    expect(group.size() == 2);
    check_works(group);
  });
}

TEST_CASE("renew: what is wrong with a call is said before anything happens", "[group]") {
  threads_on_each_backend(3, [](Group& group) {
    const auto refused = [&](const Renewal& renewal, const std::string& words) {
      expect_error({.code = ErrorCode::invalid_argument, .says = words}, [&] { group.renew(renewal); });
    };
    refused({.size = -1}, "size = -1");
    refused({.min = 0}, "min = 0");
    refused({.size = 1, .min = 2}, "size = 1 is less than min = 2");
    refused({.wait = std::chrono::seconds(-1)}, "wait is negative");
    refused({.excluded = std::array{3}}, "excluded rank 3");
    refused({.excluded = std::array{1, 1}}, "listed twice");
    expect_error({.code = ErrorCode::invalid_argument, .says = "progress: rank 3"}, [&] { group.progress(3); });
    Group row = group.dup();
    expect_error({.code = ErrorCode::invalid_argument, .says = "this group was made from 'default'"},
                 [&] { row.renew(); });
    expect_error({.code = ErrorCode::invalid_argument, .says = "this group was made from 'default'"},
                 [&] { row.lost(); });
    expect(row.epoch() == 0);
    check_works(group);
    check_works(row);
  });
}

TEST_CASE("renew: one thread at a time, and no function of then()", "[group]") {
  std::atomic<bool> is_refused = false;
  threads_on_each_backend(2, [&](Group& group, Context& context) {
    group.ibarrier().wait();
    Work work = group.ibarrier().then([&](const std::optional<Error>&) { group.renew(); });
    expect_error({.code = ErrorCode::invalid_argument, .says = "must not wait"}, [&] { work.wait(); });
    if (group.rank() == 0) is_refused = false;
    meet_beside(group, context);
    Group next;
    const auto renew = [&] {
      try {
        next = group.renew();
      } catch (const Error& error) {
        expect(has(error.what(), "another thread of this rank is in renew()"), error.what());
        is_refused = true;
      }
    };
    if (group.rank() == 0) {
      std::jthread other(renew);
      renew();
    } else {
      while (!is_refused) std::this_thread::yield();
      renew();
    }
    check_works(next);
  });
}

TEST_CASE("renew: ranks that want different things are told, and can call again", "[group]") {
  threads_on_each_backend(4, [](Group& group) {
    const int me = group.rank();
    const std::string text =
        expect_error({.code = ErrorCode::mismatch, .rank = 2, .says = "rank 2 is the odd one"}, [&] {
          group.renew({.min = me == 2 ? 3 : 2});
        }).what();
    expect(has(text, "rank 2 says size 0, min 3, excluded []"), text);
    expect_error({.code = ErrorCode::mismatch, .rank = 1},
                 [&] { group.renew({.excluded = me == 1 ? std::vector<int>{} : std::vector{3}}); });
    expect_error({.code = ErrorCode::peer_lost, .says = "fewer than min = 9"}, [&] { group.renew({.min = 9}); });
    group = group.renew();
    expect(group.size() == 4 && group.epoch() > 0);
    check_works(group);
  });
}

TEST_CASE("renew: a rank that does not call is named on all, and may be left out", "[group]") {
  check_good(run_threads(3, [](int rank, Context& context) {
    Group group = context.init_group({.rank = rank, .world_size = 3, .timeout = std::chrono::seconds(2)});
    const auto store = make_prefix_store(context.spec().store, "told");
    if (rank == 2) {
      for (const char* const other : {"0", "1"}) store->wait_for(other, kDeadline);
      // It comes too late, twice: others have given up, and have gone on without it.
      expect_error({.code = ErrorCode::timeout, .rank = 2, .says = "rank 2 lives and did not call it in time"},
                   [&] { group.renew(); });
      store->set("2", "");
      for (const char* const other : {"0 again", "1 again"}) store->wait_for(other, kDeadline);
      const Error left =
          expect_error({.code = ErrorCode::aborted, .says = "the other ranks have called renew() without it"},
                       [&] { group.renew(); });
      return expect(!left.is_loss(), left.what());
    }
    expect_error({.code = ErrorCode::timeout, .rank = 2, .says = "rank 2 lives and did not call it in time"},
                 [&] { group.renew(); });
    store->set(std::to_string(rank), "");
    store->wait_for("2", kDeadline);
    group = group.renew({.excluded = std::array{2}});
    expect(group.size() == 2);
    store->set(std::to_string(rank) + " again", "");
    check_works(group);
  }));
}

}  // namespace
}  // namespace col::test

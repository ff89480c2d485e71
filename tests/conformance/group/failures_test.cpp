// What users dread: a rank that dies, leaves, never comes, or calls something else. On a real backend, every other rank
// gets an error that names the culprit, soon.
#include <signal.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include <col/col.hpp>

#include "conformance/group/worlds.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

constexpr int kFailingRanks = 4;

// Everyone but `culprit` promptly got `code` about it.
Judge others_tell_of(int culprit, ErrorCode code) {
  return all_end({.code = code, .rank = culprit, .promptly = true}, culprit);
}

// The same, and the culprit has ended well.
Judge others_give_up(int culprit) {
  return [culprit](const std::vector<Outcome>& outcomes) {
    CHECK(outcomes[static_cast<std::size_t>(culprit)].good);
    others_tell_of(culprit, ErrorCode::timeout)(outcomes);
  };
}

constexpr const char* kOthersGaveUp = "the others gave up";

// Makes calls that time out, and counts this rank among those that have given up.
void give_up(Context& context, const std::function<void()>& calls) {
  Store& store = *context.spec().store;
  try {
    calls();
  } catch (const Error&) {
    if (store.add("gave up", 1) == kFailingRanks - 1) store.set(kOthersGaveUp, "");
    throw;
  }
}

// Stops this process; another one continues it after `patience` has returned.
void stop_for(const std::function<void()>& patience) {
  const pid_t self = getpid();
  if (fork() == 0) {
    patience();
    kill(self, SIGCONT);
    _exit(0);
  }
  kill(self, SIGSTOP);
}

TEST_CASE("failures: a rank killed between allreduces is named by all survivors within a second or two", "[group]") {
  for (const std::size_t count : {10u, 1000000u}) {
    const auto judge = [&](const std::vector<Outcome>& outcomes) {
      INFO("count " << count);
      CHECK(outcomes[2].signal == SIGKILL);
      others_tell_of(2, ErrorCode::peer_lost)(outcomes);
    };
    processes_on_each_backend(kFailingRanks, judge, [&](Group& group) {
      std::vector<float> data(count);
      for (int round = 0;; ++round) {
        if (group.rank() == 2 && round == 5) kill(getpid(), SIGKILL);
        group.allreduce(data);
      }
    });
  }
}

TEST_CASE("failures: a rank that leaves with operations unfinished is named", "[group]") {
  processes_on_each_backend(kFailingRanks, others_tell_of(1, ErrorCode::peer_lost), [](Group& group) {
    if (group.rank() == 1) _exit(3);
    group.barrier();
  });
}

// Ends rank 1 of `group` behind a call there, and lets the others wait for it in another group of the same ranks.
struct EndedElsewhere {
  std::function<void(Group& group, Group& other)> last_calls;
  std::function<void()> end;
  std::function<void(Group&)> waits;

  void operator()(Group& group) const {
    Group other = group.dup();
    other.barrier();
    last_calls(group, other);
    if (group.rank() == 1) end();
    waits(other);
  }
};

TEST_CASE("failures: a rank that ends behind a call of another group is missed in this one", "[group]") {
  const auto barrier = [](Group& group, Group&) { group.barrier(); };
  const auto message = [](Group& group, Group&) {
    std::vector<int> data(10);
    if (group.rank() == 1) group.send(data, 0);
    if (group.rank() == 0) group.recv(data, 1);
  };
  std::vector<float> kept(500000);
  const auto started = [&](Group& group, Group& other) {
    if (group.rank() == 1) static_cast<void>(other.iallreduce(kept, kept));
    group.barrier();
  };
  const auto allreduce = [](std::size_t count, const char* algorithm = "") {
    return [=](Group& group) {
      std::vector<float> data(count);
      group.allreduce(data, {.algorithm = algorithm});
    };
  };
  const auto iallreduce = [](Group& group) {
    std::vector<float> data(10);
    group.iallreduce(data, data).wait();
  };
  const auto exits = [] { _exit(86); };
  const auto dies = [] { kill(getpid(), SIGKILL); };
  const Judge judge = others_tell_of(1, ErrorCode::peer_lost);
  processes_on_each_backend(kFailingRanks, judge, EndedElsewhere{barrier, exits, allreduce(10)});
  processes_on_each_backend(kFailingRanks, judge, EndedElsewhere{barrier, dies, iallreduce});
  processes_on_each_backend(kFailingRanks, judge, EndedElsewhere{message, exits, allreduce(10, "ring")});
  processes_on_each_backend(2, judge, EndedElsewhere{started, dies, allreduce(kept.size())});
  // One that has left that group in good order before has made other calls than the others.
  const auto leaves = [](Group& group, Group& other) {
    if (group.rank() == 1) other.destroy();
    group.barrier();
  };
  processes_on_each_backend(kFailingRanks, others_tell_of(1, ErrorCode::mismatch),
                            EndedElsewhere{leaves, dies, allreduce(10)});
}

TEST_CASE("failures: a rank that calls something else is named on all ranks", "[group]") {
  const Judge judge = all_end({.code = ErrorCode::mismatch, .rank = 3, .promptly = true});
  processes_on_each_backend(kFailingRanks, judge, [](Group& group) {
    std::vector<float> data(group.rank() == 3 ? 11u : 10u);
    group.allreduce(data);
  });
}

TEST_CASE("failures: two ranks that both take themselves for the root learn of it at the next call", "[group]") {
  // Each only sends, or puts its data for others: in that call itself, nobody meets anything that is wrong.
  threads_on_each_backend(2, all_end({.code = ErrorCode::mismatch}),
                          [](Group& group) {
                            std::vector<int> data(10, group.rank());
                            group.broadcast(data, {.root = group.rank()});
                            group.barrier();
                          },
                          {.timeout = 5s});
}

// As many as a rank that only sends can be ahead over shared memory.
TEST_CASE("failures: a rank that is sixteen calls ahead is named for the first of them", "[group]") {
  threads_on_each_backend(3, all_end({.code = ErrorCode::mismatch, .rank = 0}),
                          [](Group& group, Context& context) {
                            const auto ahead = make_prefix_store(context.spec().store, "ahead");
                            const bool is_shared = group.backend() == "shm";
                            if (is_shared && group.rank() != 0) ahead->wait_for("yes", 20s);
                            for (int call = 0; call < 16; ++call) {
                              std::vector<int> data(call == 0 && group.rank() == 0 ? 3u : 2u);
                              group.broadcast(data, {.root = 0});
                            }
                            if (is_shared && group.rank() == 0) ahead->set("yes", "");
                            group.barrier();
                          },
                          {.timeout = 5s});
}

TEST_CASE("failures: ranks that name different algorithms never exchange a byte", "[group]") {
  for (const std::string& backend : usable_backends()) {
    if (backend != "gloo") continue;  // the one with two algorithms for the same call
    const auto body = rank_body(kFailingRanks, backend, [](Group& group) {
      std::vector<float> data(1, 1.0f);
      group.allreduce(data, {.algorithm = group.rank() == 0 ? "gloo_ring" : "gloo_bcube"});
    });
    check_all(run_processes(kFailingRanks, body), {.code = ErrorCode::mismatch, .rank = 0});
  }
}

TEST_CASE("failures: a rank that stays away is named by the timeout", "[group]") {
  processes_on_each_backend(kFailingRanks, others_give_up(0), [](Group& group, Context& context) {
    std::vector<float> data(10);
    group.allreduce(data);
    if (group.rank() == 0)
      context.spec().store->wait_for(kOthersGaveUp, 20s);
    else
      give_up(context, [&] { group.allreduce(data, {.timeout = 2s}); });
  });
}

TEST_CASE("failures: a rank stopped for less than the timeout is waited for", "[group]") {
  processes_on_each_backend(kFailingRanks, check_good, [](Group& group) {
    std::vector<float> data(10, 1.0f);
    // Long enough for the others to start to wonder: the length of the stop is the subject.
    if (group.rank() == 1) stop_for([] { usleep(400000); });
    group.allreduce(data);
    expect(data[0] == kFailingRanks);
  });
}

TEST_CASE("failures: a rank stopped for longer than the timeout is named, and that it was stopped", "[group]") {
  const Judge judge = all_end({.code = ErrorCode::timeout, .rank = 1, .says = "SIGSTOP", .promptly = true}, 1);
  processes_on_each_backend(kFailingRanks, judge, [](Group& group, Context& context) {
    std::vector<float> data(10, 1.0f);
    group.barrier();
    if (group.rank() != 1) return give_up(context, [&] { group.allreduce(data, {.timeout = 2s}); });
    stop_for([&] {
      try {
        context.spec().store->wait_for(kOthersGaveUp, 20s);
      } catch (const Error&) {
      }
    });
  });
}

TEST_CASE("failures: of two that stay away, the one furthest behind is named", "[group]") {
  processes_on_each_backend(kFailingRanks, others_give_up(2), [](Group& group, Context& context) {
    std::vector<float> data(10);
    group.allreduce(data);
    if (group.rank() == 2) {
      context.spec().store->wait_for(kOthersGaveUp, 20s);
      return;
    }
    give_up(context, [&] {
      // Rank 0 waits for rank 2 in the call before; ranks 1 and 3 have sent it their part of that one.
      std::vector<float> all(data.size() * kFailingRanks);
      if (group.rank() == 0)
        group.gather(data, all, {.algorithm = "linear", .timeout = 4s});
      else
        group.gather(data, {}, {.algorithm = "linear"});
      group.allreduce(data, {.timeout = 2s});
    });
  });
}

TEST_CASE("failures: leaving right after the last collective takes nothing from slower ranks", "[group]") {
  const auto judge = [](const std::vector<Outcome>& outcomes) {
    for (const Outcome& outcome : outcomes) {
      CHECK(outcome.text == "ended without a word");
      CHECK(outcome.signal == 0);
    }
  };
  for (int round = 0; round < 10; ++round) {
    processes_on_each_backend(kFailingRanks, judge, [](Group& group, Context& context) {
      std::vector<float> data(20000, static_cast<float>(group.rank()));
      group.broadcast(data, {.root = 1});
      group.allreduce(data);
      expect(data[19999] == kFailingRanks);
      context.finalize();
      _exit(0);  // and the process is gone at once
    });
  }
}

}  // namespace
}  // namespace col::test

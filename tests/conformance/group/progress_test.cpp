// COL_PROGRESS: what is in flight moves on while this process computes, or only inside its calls.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <tuple>
#include <vector>

#include <col/col.hpp>

#include "conformance/group/fleet.hpp"
#include "conformance/group/worlds.hpp"
#include "support/fork.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

constexpr int kRanks = 3;

struct Progress {
  std::atomic<int> computing{0}, finished{0}, gave_up{0};
};

// Rank 0 starts a ring of several rounds and then computes, without a call, until all the others have come to an end of
// some kind. They wait for it, for `patience`; `finished` of them see the end.
void compute_while_others_wait(Duration patience, int finished) {
  SharedByForks<Progress> shared;
  const auto judge = [&](const std::vector<Outcome>& outcomes) {
    CHECK(all_good(outcomes));
    CHECK(shared->finished == finished);
    CHECK(shared->gave_up == kRanks - 1 - finished);
    shared->computing = shared->finished = shared->gave_up = 0;
  };
  processes_on_each_backend(kRanks, judge, [&](Group& group, Context& context) {
    const int rank = group.rank();
    std::vector<int> in(300000, rank + 1), out(in.size());
    // The others begin later: none of their messages is there for rank 0 to answer before it computes.
    const auto deadline = Deadline::after(30s);
    while (rank != 0 && shared->computing == 0) expect(!deadline.expired());
    Work work = group.iallreduce(in, out, {.algorithm = "ring"});
    if (rank == 0) {
      shared->computing = 1;
      while (shared->finished + shared->gave_up < kRanks - 1) expect(!deadline.expired());
    } else if (work.wait_for(patience)) {
      ++shared->finished;
    } else {
      ++shared->gave_up;
    }
    work.wait();
    expect(out.front() == 6 && out.back() == 6);
    context.finalize();
  });
}

TEST_CASE("progress: with a thread for it, peers finish while this rank computes", "[group][async]") {
  const Setting setting("COL_PROGRESS", "thread");
  compute_while_others_wait(20s, kRanks - 1);
}

TEST_CASE("progress: without one, operations move inside calls only", "[group][async]") {
  compute_while_others_wait(1s, 0);  // what the case above would see if the thread did nothing
}

TEST_CASE("progress: the thread and the calls together do everything right", "[group][async]") {
  const Setting setting("COL_PROGRESS", "thread");
  threads_on_each_backend(3, [](Group& group) {
    Group twin = group.dup();
    for (int round = 0; round < 3; ++round) {
      std::vector<std::unique_ptr<Flight>> flights;
      int salt = 0;
      for (const std::size_t count : {3u, 20000u}) {
        for (int kind = 0; kind < kFlightKinds; ++kind)
          flights.push_back(launch(kind % 2 == 0 ? group : twin, kind, count, ++salt));
      }
      std::vector<int> data(100, 1);
      group.allreduce(data);
      expect(data.back() == 3);
      for (const auto& flight : flights) {
        for (Work work : flight->works) work.wait();
        expect_arrived(*flight);
      }
    }
  });
}

TEST_CASE("progress: a process forked from one that has the thread gets its own", "[group][async]") {
  const Setting setting("COL_PROGRESS", "thread");
  threads_on_each_backend(2, [](Group& group) {
    std::vector<int> in(20000, 1), out(in.size());
    group.iallreduce(in, out).wait();
  });
  compute_while_others_wait(20s, kRanks - 1);
}

TEST_CASE("progress: the thread ends dropped operations, and an error there reaches whoever calls next",
          "[group][async]") {
  const Setting setting("COL_PROGRESS", "thread");
  const auto judge = [](const std::vector<Outcome>& outcomes) {
    check_ending(outcomes[0], {.code = ErrorCode::aborted, .promptly = true});
  };
  processes_on_each_backend(2, judge, [](Group& group, Context& context) {
    std::vector<int> in(100000, 1), out(in.size());
    std::ignore = group.iallreduce(in, out);
    kill_behind_barrier(group, context, {1});
    // The thread may have found it before the call.
    const auto error = error_of([&] { group.iallreduce(in, out).wait(); });
    expect(error.code() == ErrorCode::peer_lost || error.code() == ErrorCode::aborted, error.what());
    expect(has(error.message(), "rank 1"), error.what());
    group.barrier();
  });
}

TEST_CASE("progress: the thread takes no signal that is meant for the program", "[group][async]") {
  const Setting setting("COL_PROGRESS", "thread");
  check_good(run_processes(1, [](int, Context& context) {
    // A thread that has nothing to do: blocked here, the signal would go to any thread that lets it.
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    static std::atomic<int> handled{0};
    signal(SIGUSR1, [](int) { ++handled; });
    const auto body = rank_body(2, usable_backends().front(), [](Group& group) {
      std::vector<int> in(20000, 1), out(in.size());
      group.iallreduce(in, out).wait();
    });
    const auto inner = run_threads(2, body);
    expect(all_good(inner), show(inner));
    pthread_sigmask(SIG_BLOCK, &usr1, nullptr);
    kill(getpid(), SIGUSR1);
    const timespec second{1, 0};
    expect(sigtimedwait(&usr1, nullptr, &second) == SIGUSR1, "somebody else took it");
    expect(handled == 0);
    context.finalize();
  }));
}

}  // namespace
}  // namespace col::test

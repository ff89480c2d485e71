// COL_PROGRESS: what is in flight moves on while this process computes, or only inside its calls.
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <new>
#include <random>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>

#include "conformance/group/fleet.hpp"
#include "conformance/group/worlds.hpp"

using col::ErrorCode;
using col::Group;
using col::Work;
using col::test::expect;
using col::test::Outcome;
using col::test::Setting;
using namespace std::chrono_literals;

namespace {

constexpr int kRanks = 3;

// Numbers that processes forked from this one share, so that they can tell each other something without a call.
struct Shared {
  std::atomic<int> computing{0}, finished{0}, gave_up{0};
};

class SharedMemory {
 public:
  SharedMemory() {
    void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    shared_ = new (memory) Shared;
  }
  ~SharedMemory() { munmap(shared_, sizeof(Shared)); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  Shared* operator->() const { return shared_; }

 private:
  Shared* shared_;
};

// Rank 0 starts a ring of several rounds and then computes, without a call, until all the others have come to an end of
// some kind. They wait for it, for `patience`.
std::vector<Outcome> compute_while_others_wait(const std::string& backend, SharedMemory& shared,
                                               col::Duration patience) {
  return col::test::run_processes(kRanks, [&](int rank, col::Context& context) {
    Group group = context.init_group({.rank = rank, .world_size = kRanks, .backend_name = backend});
    std::vector<int> in(300000, rank + 1), out(in.size());
    // The others begin later: none of their messages is there for rank 0 to answer before it computes.
    const auto deadline = col::Deadline::after(30s);
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

}  // namespace

TEST_CASE("progress: with a thread for it, peers finish while this rank computes", "[group][async]") {
  const Setting setting("COL_PROGRESS", "thread");
  for (const std::string& backend : col::test::usable_backends()) {
    SharedMemory shared;
    const auto outcomes = compute_while_others_wait(backend, shared, 20s);
    INFO(backend << "\n" << col::test::show(outcomes));
    CHECK(col::test::all_good(outcomes));
    CHECK(shared->finished == kRanks - 1);
  }
}

TEST_CASE("progress: without one, operations move inside calls only", "[group][async]") {
  // What the case above would see if the thread did nothing.
  for (const std::string& backend : col::test::usable_backends()) {
    SharedMemory shared;
    const auto outcomes = compute_while_others_wait(backend, shared, 1s);
    INFO(backend << "\n" << col::test::show(outcomes));
    CHECK(col::test::all_good(outcomes));
    CHECK(shared->finished == 0);
    CHECK(shared->gave_up == kRanks - 1);
  }
}

TEST_CASE("progress: the thread and the calls together do everything right", "[group][async]") {
  const Setting setting("COL_PROGRESS", "thread");
  col::test::threads_on_each_backend(3, [](Group& group, col::Context&) {
    Group twin = group.dup();
    for (int round = 0; round < 3; ++round) {
      std::vector<std::unique_ptr<col::test::Flight>> flights;
      int salt = 0;
      for (const std::size_t count : {3u, 20000u}) {
        for (int kind = 0; kind < col::test::kFlightKinds; ++kind)
          flights.push_back(col::test::launch(kind % 2 == 0 ? group : twin, kind, count, ++salt));
      }
      std::vector<int> data(100, 1);
      group.allreduce(data);
      expect(data.back() == 3);
      for (const auto& flight : flights) {
        for (Work work : flight->works) work.wait();
        col::test::expect_arrived(*flight);
      }
    }
  });
}

TEST_CASE("progress: a process forked from one that has the thread gets its own", "[group][async]") {
  const Setting setting("COL_PROGRESS", "thread");
  col::test::threads_on_each_backend(2, [](Group& group, col::Context&) {
    std::vector<int> in(20000, 1), out(in.size());
    group.iallreduce(in, out).wait();
  });
  for (const std::string& backend : col::test::usable_backends()) {
    SharedMemory shared;
    const auto outcomes = compute_while_others_wait(backend, shared, 20s);
    INFO(backend << "\n" << col::test::show(outcomes));
    CHECK(col::test::all_good(outcomes));
    CHECK(shared->finished == kRanks - 1);
  }
}

TEST_CASE("progress: the thread ends dropped operations, and an error there reaches whoever calls next",
          "[group][async]") {
  const Setting setting("COL_PROGRESS", "thread");
  for (const std::string& backend : col::test::usable_backends()) {
    const auto outcomes = col::test::run_processes(2, [&](int rank, col::Context& context) {
      Group group = context.init_group({.rank = rank, .world_size = 2, .backend_name = backend});
      std::vector<int> in(100000, 1), out(in.size());
      std::ignore = group.iallreduce(in, out);
      group.barrier();
      if (rank == 1) raise(SIGKILL);
      // The thread may have found it before the call.
      const auto error = col::test::error_of([&] { group.iallreduce(in, out).wait(); });
      expect(error.code() == ErrorCode::peer_lost || error.code() == ErrorCode::aborted, error.what());
      expect(error.message().find("rank 1") != std::string::npos, error.what());
      group.barrier();
    });
    INFO(backend << "\n" << col::test::show(outcomes));
    CHECK(outcomes[0].code == ErrorCode::aborted);
    CHECK(outcomes[0].seconds < 10);
  }
}

TEST_CASE("progress: the thread takes no signal that is meant for the program", "[group][async]") {
  const Setting setting("COL_PROGRESS", "thread");
  const auto outcomes = col::test::run_processes(1, [&](int, col::Context& context) {
    // A thread that has nothing to do: blocked here, the signal would go to any thread that lets it.
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    static std::atomic<int> handled{0};
    signal(SIGUSR1, [](int) { ++handled; });
    const auto backend = col::test::usable_backends().front();
    const auto inner = col::test::run_threads(2, col::test::joined(2, backend, [](Group& group, col::Context&) {
                                                std::vector<int> in(20000, 1), out(in.size());
                                                group.iallreduce(in, out).wait();
                                              }));
    expect(col::test::all_good(inner), col::test::show(inner));
    pthread_sigmask(SIG_BLOCK, &usr1, nullptr);
    kill(getpid(), SIGUSR1);
    const timespec second{1, 0};
    expect(sigtimedwait(&usr1, nullptr, &second) == SIGUSR1, "somebody else took it");
    expect(handled == 0);
    context.finalize();
  });
  INFO(col::test::show(outcomes));
  CHECK(col::test::all_good(outcomes));
}

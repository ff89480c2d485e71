// ContextSpec::interrupt: a program ends its own blocked call, and the other ranks learn why.
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <col/col.hpp>

#include "conformance/group/worlds.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

// What Ctrl-C becomes in an interpreter: no col::Error, and no std::exception either.
struct Stopped {
  int number = 0;
};

// Rank 1 makes a call that the others do not make, is interrupted, and says so; then the others come.
class Scene {
 public:
  explicit Scene(std::function<void(Group&)> call) : call_(std::move(call)) {}

  void play() {
    threads_on_each_backend(3, check_good,
                            [this](Group& group, Context& context) {
                              if (group.rank() != 1) {
                                context.spec().store->wait_for("interrupted on " + std::string(group.backend()), 20s);
                                const Error error = error_of([&] { group.barrier(); });
                                expect(error.code() == ErrorCode::aborted && error.rank() == 1, error.what());
                                expect(has(error.message(), "rank 1 was interrupted in"), error.what());
                                return;
                              }
                              be_interrupted(group);
                              context.spec().store->set("interrupted on " + std::string(group.backend()), "");
                            },
                            {.adapt = [this](ContextSpec& spec) {
                              if (spec.rank != 1) return;
                              spec.interrupt = [this] {
                                if (calls_) throw Stopped{7};
                              };
                            }});
  }

 private:
  void be_interrupted(Group& group) {
    const auto begin = Deadline::Clock::now();
    calls_ = true;
    try {
      call_(group);
      expect(false, "the call ended");
    } catch (const Stopped& stopped) {
      expect(stopped.number == 7);
    }
    calls_ = false;
    expect(Deadline::Clock::now() - begin < kPrompt);
    expect_error({.code = ErrorCode::aborted, .rank = 1, .says = "interrupted"}, [&] { group.barrier(); });
  }

  std::function<void(Group&)> call_;
  std::atomic<bool> calls_{false};  // on a busy machine, the making of the group takes long enough to be interrupted
};

TEST_CASE("interrupt: ends a collective, and the group breaks everywhere", "[group]") {
  Scene([](Group& group) {
    std::vector<float> data(10, 1);
    group.allreduce(data);
  }).play();
}

TEST_CASE("interrupt: ends a long collective that runs by a plan", "[group]") {
  Scene([](Group& group) {
    std::vector<float> data(200000, 1);
    group.allreduce(data, {.algorithm = "ring"});
  }).play();
}

TEST_CASE("interrupt: ends a receive", "[group]") {
  Scene([](Group& group) {
    std::vector<float> data(10);
    group.recv(data, 0);
  }).play();
}

TEST_CASE("interrupt: ends the wait for a Work, with and without a budget", "[group][async]") {
  for (const auto budget : {0ms, 10000ms}) {
    Scene([&](Group& group) {
      std::vector<int> in(10, 1), out(10);
      Work work = group.iallreduce(in, out);
      if (budget > 0ms)
        work.wait_for(budget);
      else
        work.wait();
    }).play();
  }
}

TEST_CASE("interrupt: ends object calls", "[group]") {
  Scene([](Group& group) { std::ignore = group.allgather_object(std::string("a")); }).play();
}

TEST_CASE("interrupt: ends the making of a group, and leaves the name free", "[group]") {
  const auto body = [](int rank, Context& context) {
    if (rank == 1) return;
    const auto begin = Deadline::Clock::now();
    for (int i = 0; i < 2; ++i) {
      try {
        context.init_group({.name = "late", .rank = 0, .world_size = 2});
        expect(false, "the group was made");
      } catch (const Stopped&) {
      }
    }
    expect(!context.is_initialized("late"));
    expect(Deadline::Clock::now() - begin < kPrompt);
  };
  check_good(run_threads(2, body, {.adapt = [](ContextSpec& spec) { spec.interrupt = [] { throw Stopped(); }; }}));
}

TEST_CASE("interrupt: that returns lets calls go on", "[group]") {
  std::atomic<int> asked{0};
  threads_on_each_backend(2, check_good,
                          [&](Group& group, Context& context) {
                            const std::string key = "asked on " + std::string(group.backend());
                            const int before = asked;
                            if (group.rank() == 1) {
                              // The other one waits, and is asked meanwhile.
                              const auto deadline = Deadline::after(20s);
                              while (asked == before) expect(!deadline.expired());
                              context.spec().store->set(key, "");
                            }
                            group.barrier();
                          },
                          {.adapt = [&](ContextSpec& spec) { spec.interrupt = [&] { ++asked; }; }});
}

TEST_CASE("interrupt: a col::Error leaves as it is, too", "[group]") {
  std::atomic<bool> calls{false};
  const auto body = [&](Group& group, Context& context) {
    const std::string key = "left on " + std::string(group.backend());
    if (group.rank() == 1) {
      context.spec().store->wait_for(key, 20s);
      return;
    }
    calls = true;
    const Error error = error_of([&] { group.barrier(); });
    calls = false;
    context.spec().store->set(key, "");
    expect(error.code() == ErrorCode::io && error.message() == "the user left", error.what());
    expect_error({.code = ErrorCode::aborted, .rank = 0}, [&] { group.barrier(); });
  };
  const auto adapt = [&](ContextSpec& spec) {
    if (spec.rank != 0) return;
    spec.interrupt = [&] {
      if (calls) throw Error(ErrorCode::io, "the user left");
    };
  };
  threads_on_each_backend(2, check_good, body, {.adapt = adapt});
}

TEST_CASE("interrupt: ends wait_all at once, and leaves the other groups as they are", "[group][async]") {
  std::atomic<bool> calls{false};
  const auto body = [&](Group& group, Context& context) {
    Group other = join_another(context, "other", group);
    const std::string key = "waited on " + std::string(group.backend());
    std::vector<int> in(10, 1), a(10), b(10);
    if (group.rank() == 1) {
      context.spec().store->wait_for(key, 20s);
      other.iallreduce(in, b).wait();
      return;
    }
    std::vector<Work> works{group.iallreduce(in, a), other.iallreduce(in, b)};
    calls = true;
    expect_error(ErrorCode::io, "the user left", [&] { wait_all(works); });
    calls = false;
    expect(works[0].error() && !works[1].has_ended());
    context.spec().store->set(key, "");
    const auto deadline = Deadline::after(20s);
    while (!works[1].test()) expect(!deadline.expired());
    expect(b.back() == 2);
  };
  const auto adapt = [&](ContextSpec& spec) {
    if (spec.rank != 0) return;
    spec.interrupt = [&] {
      if (calls) throw Error(ErrorCode::io, "the user left");
    };
  };
  threads_on_each_backend(2, check_good, body, {.adapt = adapt});
}

}  // namespace
}  // namespace col::test

#include "launch/injector.hpp"

#include <csignal>
#include <vector>

#include "support/catch.hpp"

using namespace col::launch;
using Injected = Injection::Kind;

namespace {

const Injector::Time kInjectorStart{std::chrono::hours(1)};

Injection injection(Injected kind, int rank, Milliseconds at, Milliseconds duration = Milliseconds(0),
                    double factor = 1) {
  return {.kind = kind, .rank = rank, .at = at, .duration = duration, .factor = factor};
}

}  // namespace

TEST_CASE("injector: a rank is killed at its time, once, and no other is", "[launch]") {
  Injector injector({injection(Injected::kill, 5, Milliseconds(100)), injection(Injected::kill, 9, Milliseconds(0))}, 4,
                    4);
  CHECK_FALSE(injector.deadline());
  injector.on_started(4, kInjectorStart);
  CHECK_FALSE(injector.deadline());
  injector.on_started(5, kInjectorStart);
  REQUIRE(injector.deadline() == kInjectorStart + Milliseconds(100));
  CHECK(injector.due(kInjectorStart + Milliseconds(99)).empty());
  const auto acts = injector.due(kInjectorStart + Milliseconds(100));
  REQUIRE(acts.size() == 1);
  CHECK(acts[0].rank == 5);
  CHECK(acts[0].signal == SIGKILL);
  CHECK_FALSE(injector.deadline());
  injector.on_started(9, kInjectorStart);  // a rank of another node
  CHECK(injector.due(kInjectorStart + Milliseconds(1000)).empty());
}

TEST_CASE("injector: a stopped rank goes on after its time, or never", "[launch]") {
  Injector injector({injection(Injected::stop, 0, Milliseconds(10), Milliseconds(30)),
                     injection(Injected::stop, 1, Milliseconds(10))},
                    0, 2);
  injector.on_started(0, kInjectorStart);
  injector.on_started(1, kInjectorStart);
  auto acts = injector.due(kInjectorStart + Milliseconds(10));
  REQUIRE(acts.size() == 2);
  CHECK(acts[0].signal == SIGSTOP);
  CHECK(acts[1].signal == SIGSTOP);
  REQUIRE(injector.deadline() == kInjectorStart + Milliseconds(40));
  acts = injector.due(kInjectorStart + Milliseconds(40));
  REQUIRE(acts.size() == 1);
  CHECK(acts[0].rank == 0);
  CHECK(acts[0].signal == SIGCONT);
  CHECK_FALSE(injector.deadline());
}

TEST_CASE("injector: a slowed rank runs for its part of each period, and is announced once", "[launch]") {
  Injector injector({injection(Injected::slow, 0, Milliseconds(0), Milliseconds(0), 4)}, 0, 1);
  injector.on_started(0, kInjectorStart);
  Milliseconds stopped{0}, all{0};
  int announced = 0;
  auto now = kInjectorStart;
  bool is_stopped = false;
  for (int act = 0; act < 20; ++act) {
    const auto due = *injector.deadline();
    const auto passed = std::chrono::duration_cast<Milliseconds>(due - now);
    all += passed;
    if (is_stopped) stopped += passed;
    now = due;
    const auto acts = injector.due(now);
    REQUIRE(acts.size() == 1);
    CHECK(acts[0].signal == (is_stopped ? SIGCONT : SIGSTOP));
    announced += acts[0].announced ? 1 : 0;
    is_stopped = !is_stopped;
  }
  CHECK(announced == 1);
  CHECK(stopped.count() * 4 >= all.count() * 3 - 4 * Injector::kPeriod.count());
  CHECK(stopped < all);
  // A launcher that was late does not make up for it.
  now += std::chrono::seconds(10);
  CHECK(injector.due(now).size() == 1);
  CHECK(*injector.deadline() > now);
  injector.on_ended(0);
  CHECK_FALSE(injector.deadline());
}

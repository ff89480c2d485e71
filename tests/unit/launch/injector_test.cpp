#include "launch/injector.hpp"

#include <csignal>
#include <vector>

#include "support/catch.hpp"

using namespace col::launch;
using Kind = Injection::Kind;

namespace {

const Injector::Time kStart{std::chrono::hours(1)};

Injection injection(Kind kind, int rank, Milliseconds at, Milliseconds duration = Milliseconds(0), double factor = 1) {
  return {.kind = kind, .rank = rank, .at = at, .duration = duration, .factor = factor};
}

}  // namespace

TEST_CASE("injector: a rank is killed at its time, once, and no other is", "[launch]") {
  Injector injector({injection(Kind::kill, 5, Milliseconds(100)), injection(Kind::kill, 9, Milliseconds(0))}, 4, 4);
  CHECK_FALSE(injector.deadline());
  injector.on_started(4, kStart);
  CHECK_FALSE(injector.deadline());
  injector.on_started(5, kStart);
  REQUIRE(injector.deadline() == kStart + Milliseconds(100));
  CHECK(injector.due(kStart + Milliseconds(99)).empty());
  const auto acts = injector.due(kStart + Milliseconds(100));
  REQUIRE(acts.size() == 1);
  CHECK(acts[0].rank == 5);
  CHECK(acts[0].signal == SIGKILL);
  CHECK_FALSE(injector.deadline());
  injector.on_started(9, kStart);  // a rank of another node
  CHECK(injector.due(kStart + Milliseconds(1000)).empty());
}

TEST_CASE("injector: a stopped rank goes on after its time, or never", "[launch]") {
  Injector injector(
      {injection(Kind::stop, 0, Milliseconds(10), Milliseconds(30)), injection(Kind::stop, 1, Milliseconds(10))}, 0, 2);
  injector.on_started(0, kStart);
  injector.on_started(1, kStart);
  auto acts = injector.due(kStart + Milliseconds(10));
  REQUIRE(acts.size() == 2);
  CHECK(acts[0].signal == SIGSTOP);
  CHECK(acts[1].signal == SIGSTOP);
  REQUIRE(injector.deadline() == kStart + Milliseconds(40));
  acts = injector.due(kStart + Milliseconds(40));
  REQUIRE(acts.size() == 1);
  CHECK(acts[0].rank == 0);
  CHECK(acts[0].signal == SIGCONT);
  CHECK_FALSE(injector.deadline());
}

TEST_CASE("injector: a slowed rank runs for its part of each period, and is announced once", "[launch]") {
  Injector injector({injection(Kind::slow, 0, Milliseconds(0), Milliseconds(0), 4)}, 0, 1);
  injector.on_started(0, kStart);
  Milliseconds stopped{0}, all{0};
  int announced = 0;
  auto now = kStart;
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

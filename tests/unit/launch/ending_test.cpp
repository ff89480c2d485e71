#include "launch/ending.hpp"

#include <csignal>

#include "support/catch.hpp"

using col::launch::Ending;
using std::chrono::milliseconds;

namespace {

const Ending::Time kStart{std::chrono::hours(1)};

}  // namespace

TEST_CASE("ending: after a failure others that use col get a moment, then TERM, then KILL", "[launch]") {
  Ending ending;
  ending.on_failure({.rank = 2, .others_may_notice = true}, kStart);
  CHECK(ending.due(kStart) == 0);
  auto now = kStart + Ending::kSettle;
  REQUIRE(ending.deadline() == now);
  CHECK(ending.due(now) == SIGTERM);
  CHECK(ending.due(now) == 0);
  now += Ending::kGrace;
  CHECK(ending.due(now) == SIGKILL);
  now += Ending::kKillWait;
  CHECK(ending.due(now) == 0);
  CHECK(ending.phase() == Ending::Phase::given_up);
  CHECK(ending.culprit() == 2);
}

TEST_CASE("ending: ranks that do not use col have nothing to notice", "[launch]") {
  Ending ending;
  ending.on_failure({.rank = 0}, kStart);
  CHECK(ending.due(kStart) == SIGTERM);
}

TEST_CASE("ending: the first rank to fail on its own is the culprit", "[launch]") {
  Ending ending;
  SECTION("later failures change nothing") {
    ending.on_failure({.rank = 3, .others_may_notice = true}, kStart);
    ending.on_failure({.rank = 1}, kStart);
    CHECK(ending.culprit() == 3);
  }
  SECTION("a collateral one that was seen first gives way") {
    ending.on_failure({.rank = 0, .collateral = true}, kStart);
    CHECK(ending.due(kStart) == 0);
    ending.on_failure({.rank = 2}, kStart + milliseconds(10));
    CHECK(ending.culprit() == 2);
  }
  SECTION("collateral ones alone: the first of them") {
    ending.on_failure({.rank = 4, .collateral = true}, kStart);
    ending.on_failure({.rank = 2, .collateral = true}, kStart);
    CHECK(ending.culprit() == 4);
  }
  SECTION("how ranks end once told to is no cause, a crash still is") {
    ending.on_failure({.rank = 0, .collateral = true}, kStart);
    REQUIRE(ending.due(kStart + Ending::kSettle) == SIGTERM);
    ending.on_failure({.rank = 1}, kStart + Ending::kSettle);
    ending.on_failure({.rank = 2, .by_signal = SIGTERM}, kStart + Ending::kSettle);
    CHECK(ending.culprit() == 0);
    ending.on_failure({.rank = 3, .by_signal = SIGSEGV}, kStart + Ending::kSettle);
    CHECK(ending.culprit() == 3);
  }
}

TEST_CASE("ending: SIGINT escalates with every further one, and by itself", "[launch]") {
  Ending ending;
  ending.on_signal(SIGINT, kStart);
  CHECK(ending.due(kStart) == SIGINT);
  SECTION("impatient") {
    ending.on_signal(SIGINT, kStart);
    CHECK(ending.due(kStart) == SIGTERM);
    ending.on_signal(SIGINT, kStart);
    CHECK(ending.due(kStart) == SIGKILL);
  }
  SECTION("patient") {
    CHECK(ending.due(kStart + Ending::kGrace) == SIGTERM);
    CHECK(ending.due(kStart + 2 * Ending::kGrace) == SIGKILL);
  }
  CHECK(ending.signal() == SIGINT);
  CHECK(ending.why() == Ending::Why::interrupted);
}

TEST_CASE("ending: SIGTERM is forwarded, given the grace, and may come twice", "[launch]") {
  Ending ending;
  ending.on_signal(SIGTERM, kStart);
  CHECK(ending.due(kStart) == SIGTERM);
  ending.on_signal(SIGTERM, kStart + milliseconds(1));
  CHECK(ending.due(kStart + milliseconds(1)) == 0);
  CHECK(ending.due(kStart + Ending::kGrace) == SIGKILL);
}

TEST_CASE("ending: an interrupted job has no culprit, a failed one keeps its own", "[launch]") {
  Ending interrupted;
  interrupted.on_signal(SIGTERM, kStart);
  interrupted.on_failure({.rank = 1}, kStart);
  CHECK(interrupted.culprit() == -1);
  Ending failed;
  failed.on_failure({.rank = 1, .others_may_notice = true}, kStart);
  failed.on_signal(SIGINT, kStart);
  CHECK(failed.due(kStart) == SIGTERM);
  CHECK(failed.why() == Ending::Why::rank_failed);
  CHECK(failed.signalled_after());
}

TEST_CASE("ending: kill needs no grace and happens once", "[launch]") {
  Ending ending;
  ending.kill(Ending::Why::launcher_failed, kStart);
  CHECK(ending.due(kStart) == SIGKILL);
  ending.kill(Ending::Why::launcher_failed, kStart);
  CHECK(ending.due(kStart) == 0);
}

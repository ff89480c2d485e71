// When the event thread stands aside, and for what: every state of it with every state of its rank.
#include "backend/gloo/standby.hpp"

#include <chrono>
#include <map>
#include <utility>

#include "support/catch.hpp"

using col::gloo_backend::Standby;
using Rank = Standby::Rank;
using Thread = Standby::Thread;
using namespace std::chrono_literals;

TEST_CASE("standby: every state of the event thread with every state of its rank", "[gloo]") {
  using enum Standby::Thread;
  const std::map<std::pair<Thread, Rank>, Thread> expected = {
      {{serves, Rank::quiet}, serves},
      {{serves, Rank::calls}, aside_for_calls},
      {{serves, Rank::waits}, aside_for_call},
      {{serves, Rank::sleeps}, serves},
      {{serves, Rank::gone}, serves},
      {{aside_for_call, Rank::quiet}, aside_for_calls},
      {{aside_for_call, Rank::calls}, aside_for_calls},
      {{aside_for_call, Rank::waits}, serves},
      {{aside_for_call, Rank::sleeps}, serves},
      {{aside_for_call, Rank::gone}, serves},
      {{aside_for_calls, Rank::quiet}, serves},
      {{aside_for_calls, Rank::calls}, aside_for_calls},
      {{aside_for_calls, Rank::waits}, aside_for_call},
      {{aside_for_calls, Rank::sleeps}, serves},
      {{aside_for_calls, Rank::gone}, serves},
  };
  for (const auto& [now, then] : expected) {
    CAPTURE(static_cast<int>(now.first), static_cast<int>(now.second));
    CHECK(Standby::next(now.first, now.second) == then);
  }
}

TEST_CASE("standby: the thread leaves the events to a call that waits, and looks if that goes on", "[gloo]") {
  Standby standby;
  standby.begin_call(true);
  CHECK(standby.call_waits());
  standby.on_served(false);
  REQUIRE(standby.is_aside());
  CHECK(standby.stays_aside());
  CHECK(standby.time() == 20ms);
  SECTION("it goes on") {
    standby.on_stood();
    CHECK_FALSE(standby.is_aside());
    CHECK_FALSE(standby.end_call());  // there is nobody to notify
    standby.on_served(false);
    CHECK(standby.is_aside());
  }
  SECTION("it ends, and the next is awaited, once") {
    CHECK(standby.end_call());
    CHECK_FALSE(standby.stays_aside());
    standby.on_stood();
    REQUIRE(standby.is_aside());
    CHECK(standby.stays_aside());
    CHECK(standby.time() == 100us);
    standby.on_stood();
    CHECK_FALSE(standby.is_aside());
  }
}

TEST_CASE("standby: the thread stays away while calls follow one another, until the rank sleeps or goes", "[gloo]") {
  Standby standby;
  standby.on_served(false);
  CHECK_FALSE(standby.is_aside());  // no call has been made
  standby.begin_call(false);
  CHECK_FALSE(standby.call_waits());
  CHECK_FALSE(standby.end_call());
  standby.on_served(false);
  for (int call = 0; call < 3; ++call) {
    REQUIRE(standby.is_aside());
    CHECK(standby.time() == 100us);
    standby.begin_call(false);
    CHECK_FALSE(standby.end_call());
    CHECK(standby.stays_aside());
    standby.on_stood();
  }
  SECTION("it sleeps") {
    CHECK(standby.sleep());
    CHECK_FALSE(standby.stays_aside());
    standby.on_stood();
    CHECK_FALSE(standby.is_aside());
    CHECK_FALSE(standby.sleep());  // nobody to notify
    standby.on_served(false);
    CHECK_FALSE(standby.is_aside());
    CHECK_FALSE(standby.is_over());
  }
  SECTION("it goes") {
    standby.leave();
    CHECK_FALSE(standby.stays_aside());
    standby.on_stood();
    CHECK_FALSE(standby.is_aside());
    CHECK(standby.is_over());
  }
  SECTION("something is left that only the thread goes on with") {
    standby.serve();
    CHECK_FALSE(standby.is_aside());
  }
}

TEST_CASE("standby: while a long message comes, the thread serves on, unless a call waits for it", "[gloo]") {
  Standby standby;
  standby.begin_call(false);
  standby.on_served(true);
  CHECK_FALSE(standby.is_aside());
  standby.on_served(false);
  CHECK_FALSE(standby.is_aside());  // that call has been seen
  standby.begin_call(true);
  standby.on_served(true);
  CHECK(standby.is_aside());
}

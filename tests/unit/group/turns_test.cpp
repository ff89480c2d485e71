// Turns: threads that use one group in turn.
#include <chrono>
#include <thread>

#include <catch2/catch.hpp>

#include "group/flight/access.hpp"

namespace col::group {
namespace {

using namespace std::chrono_literals;

TEST_CASE("turns: a wait inside of a wait that gives up leaves the outer one its place", "[group]") {
  Turns turns;
  const Deadline never = Deadline::after(20s);
  WaitContext own(never);
  REQUIRE(turns.enter(own, never));
  bool has_given_up = false, has_entered = false;
  std::jthread other([&] {
    // What a check calls, such as a reduction of the user's that uses the group, comes here again.
    const Interrupt inner = [&] {
      if (has_given_up) return;
      WaitContext wait(never);
      has_given_up = !turns.enter(wait, Deadline::after(1ms));
      turns.leave();  // of the test's thread: the outer wait can go on
    };
    WaitContext wait(never, nullptr, nullptr, nullptr, &inner);
    has_entered = turns.enter(wait, never);
    if (has_entered) turns.leave();
  });
  other.join();
  CHECK(has_given_up);
  CHECK(has_entered);
}

TEST_CASE("turns: who gives up does not hold up those behind", "[group]") {
  Turns turns;
  const Deadline never = Deadline::after(20s);
  WaitContext own(never);
  REQUIRE(turns.enter(own, never));
  REQUIRE(turns.enter(own, never));  // again, by the same thread
  const auto enters = [&] {
    bool has_entered = false;
    std::jthread([&] {
      WaitContext wait(never);
      has_entered = turns.enter(wait, Deadline::after(Duration::zero()));
      if (has_entered) turns.leave();
    }).join();
    return has_entered;
  };
  CHECK_FALSE(enters());
  turns.leave();
  CHECK_FALSE(enters());
  turns.leave();
  CHECK(enters());
}

}  // namespace
}  // namespace col::group

// Tests what waits in net, in simulated time.
#include <array>
#include <chrono>

#include <sys/epoll.h>

#include "core/clock/clock.hpp"
#include "net/poller.hpp"
#include "simulation/simulator.hpp"
#include "support/catch.hpp"

TEST_CASE("simulated poller: its alarm is due in simulated time") {
  using namespace std::chrono_literals;
  col::test::Trace trace;
  col::test::Simulator simulator(1, trace);
  simulator.add_process(
      [] {
        col::net::Poller poller([](const char*) { FAIL("a descriptor"); }, true);
        std::array<epoll_event, 4> events;
        const auto begin = col::core::Clock::now();
        poller.set_alarm(5min);
        CHECK(poller.wait(events, 4min) == 0);
        CHECK(poller.wait(events, 10min) == 1);
        CHECK(events[0].data.u64 == col::net::Poller::kAlarm);
        CHECK(col::core::Clock::now() - begin >= 5min);
        CHECK(col::core::Clock::now() - begin < 6min);
        CHECK(poller.wait(events, 1s) == 0);
        poller.wake();
        CHECK((poller.wait(events, 1s) == 1 && events[0].data.u64 == col::net::Poller::kWoken));
      },
      {});
  CHECK(simulator.run() == col::test::Simulator::End::all_ended);
}

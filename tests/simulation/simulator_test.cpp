// The scheduler of simulated jobs, on threads that do next to nothing.
#include "simulation/simulator.hpp"

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/clock/lock.hpp"
#include "core/clock/this_process.hpp"
#include "core/job/process.hpp"
#include "support/catch.hpp"

namespace {

using namespace std::chrono_literals;
using col::core::Clock;
using col::core::Condition;
using col::core::Mutex;
using col::core::ProcessCondition;
using col::test::Simulator;
using col::test::Trace;

// Never destroyed: threads of killed processes stay in it.
struct Run {
  explicit Run(std::uint64_t seed) : simulator(seed, trace) {}
  Trace trace;
  Simulator simulator;
};
Run& make_run(std::uint64_t seed) {
  static auto* const runs = new std::vector<std::unique_ptr<Run>>;
  runs->push_back(std::make_unique<Run>(seed));
  return *runs->back();
}

// Two threads of two processes append to a text, each letter after a yield.
std::pair<std::string, std::uint64_t> race(std::uint64_t seed) {
  Run& run = make_run(seed);
  std::string text;
  for (const char letter : {'a', 'b'}) {
    run.simulator.add_process(
        [&text, letter] {
          for (int i = 0; i < 8; ++i) {
            col::core::yield();
            text += letter;
          }
        },
        {});
  }
  REQUIRE(run.simulator.run() == Simulator::End::all_ended);
  return {text, run.trace.hash()};
}

}  // namespace

TEST_CASE("simulator: a seed is an order, and another seed another") {
  std::set<std::string> orders;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto [text, hash] = race(seed);
    CHECK(race(seed) == std::pair(text, hash));
    orders.insert(text);
  }
  CHECK(orders.size() > 15);
}

TEST_CASE("simulator: time jumps when all wait, and a sleep is never short") {
  Run& run = make_run(1);
  std::vector<int> woken;
  for (const int minutes : {5, 3, 4}) {
    run.simulator.add_process(
        [&woken, minutes] {
          const auto begun = Clock::now();
          col::core::sleep_for(std::chrono::minutes(minutes));
          if (Clock::now() - begun >= std::chrono::minutes(minutes)) woken.push_back(minutes);
        },
        {});
  }
  CHECK(run.simulator.run() == Simulator::End::all_ended);
  CHECK(woken == std::vector{3, 4, 5});
}

TEST_CASE("simulator: locks and conditions hold between processes") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Run& run = make_run(seed);
    Mutex mutex;
    Condition changed;
    int given = 0, taken = 0, inside = 0, most_inside = 0;
    run.simulator.add_process(
        [&] {
          for (int i = 0; i < 5; ++i) {
            std::unique_lock lock(mutex);
            most_inside = std::max(most_inside, ++inside);
            col::core::yield();  // with the lock held
            ++given;
            --inside;
            changed.notify_one();
          }
        },
        {});
    run.simulator.add_process(
        [&] {
          while (taken < 5) {
            std::unique_lock lock(mutex);
            changed.wait(lock, [&] { return given > taken; });
            most_inside = std::max(most_inside, ++inside);
            col::core::yield();
            ++taken;
            --inside;
          }
        },
        {});
    REQUIRE(run.simulator.run() == Simulator::End::all_ended);
    CHECK(taken == 5);
    CHECK(most_inside == 1);
  }
}

TEST_CASE("simulator: others may go on before a free lock is taken") {
  std::set<std::string> orders;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Run& run = make_run(seed);
    std::string text;
    for (const char letter : {'a', 'b'}) {
      run.simulator.add_process(
          [&text, letter] {
            Mutex own;
            for (int i = 0; i < 30; ++i) {
              const std::lock_guard lock(own);
              text += letter;
            }
          },
          {});
    }
    REQUIRE(run.simulator.run() == Simulator::End::all_ended);
    orders.insert(text);
  }
  CHECK(orders.size() > 10);
}

TEST_CASE("simulator: who waits for what never comes is said") {
  Run& run = make_run(1);
  auto* const mutex = new Mutex;
  auto* const never = new Condition;
  run.simulator.add_process(
      [&run, mutex, never] {
        run.simulator.say_place("the place");
        std::unique_lock lock(*mutex);
        never->wait(lock);
      },
      {});
  CHECK(run.simulator.run() == Simulator::End::stuck);
  CHECK(run.simulator.places() == "  0.0 waits in the place\n");
}

TEST_CASE("simulator: a killed process goes no further, keeps its locks, and is gone") {
  Run& run = make_run(1);
  auto* const mutex = new Mutex;
  bool went_on = false, got_lock = true;
  auto condition = ProcessCondition::runs;
  std::int64_t pid = 0;
  run.simulator.add_process(
      [&, mutex] {
        pid = col::core::own_pid();
        const std::lock_guard lock(*mutex);
        col::core::sleep_for(10s);
        went_on = true;
      },
      {});
  run.simulator.add_process(
      [&, mutex] {
        col::core::sleep_for(20s);
        condition = col::core::ProcessId(pid, 1).condition();
        got_lock = mutex->try_lock();
      },
      {});
  run.simulator.at(Simulator::kBegin + 5s, [&] { run.simulator.kill(0); });
  CHECK(run.simulator.run() == Simulator::End::all_ended);
  CHECK_FALSE(went_on);
  CHECK(condition == ProcessCondition::gone);
  CHECK_FALSE(got_lock);
}

TEST_CASE("simulator: a stopped process stands still, and goes on") {
  Run& run = make_run(1);
  Clock::time_point ended;
  auto condition = ProcessCondition::runs;
  run.simulator.add_process(
      [&] {
        for (int i = 0; i < 10; ++i) col::core::sleep_for(1s);
        ended = Clock::now();
      },
      {});
  run.simulator.at(Simulator::kBegin + 3s, [&] { run.simulator.stop(0); });
  run.simulator.at(Simulator::kBegin + 4s, [&] { condition = run.simulator.state_of(0); });
  run.simulator.at(Simulator::kBegin + 60s, [&] { run.simulator.go_on(0); });
  CHECK(run.simulator.run() == Simulator::End::all_ended);
  CHECK(condition == ProcessCondition::stopped);
  CHECK(ended >= Simulator::kBegin + 60s);
}

TEST_CASE("simulator: a process has threads, and state of its own") {
  Run& run = make_run(3);
  std::vector<int> groups;
  for (int i = 0; i < 2; ++i) {
    run.simulator.add_process(
        [&groups] {
          int done = 0;
          col::core::Thread helper([&done] {
            col::core::sleep_for(1s);
            col::core::process_state().unattended_groups += 1;
            done = 1;
          });
          helper.join();
          groups.push_back(done + 10 * col::core::process_state().unattended_groups);
          col::core::Thread([] { col::core::sleep_for(10min); }).detach();
        },
        {});
  }
  CHECK(run.simulator.run() == Simulator::End::all_ended);
  CHECK(groups == std::vector{11, 11});
  CHECK(run.simulator.left_threads(0) == 1);
}

TEST_CASE("simulator: a thread that polls while nothing happens takes few turns") {
  Run& run = make_run(1);
  run.simulator.add_process(
      [] {
        const auto until = Clock::now() + 5min;
        while (Clock::now() < until) col::core::sleep_for(50us);
      },
      {});
  CHECK(run.simulator.run() == Simulator::End::all_ended);
  CHECK(run.trace.lines() < 40'000);
}

#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include <col/job.hpp>

#include "core/clock/clock.hpp"
#include "helpers.hpp"
#include "support/catch.hpp"
#include "support/jumping_time.hpp"
#include "support/prompt.hpp"

using col::ControlPage;
using col::Deadline;
using col::Duration;
using col::ErrorCode;
using col::WaitContext;
using core_test::error_of;
using namespace std::chrono_literals;

namespace {

// Notes its calls; ends the wait where told to.
class Observer : public col::WaitObserver {
 public:
  bool on_slow(Duration waited) override {
    slow_calls.push_back(waited);
    if (throw_at_slow) throw col::Error(ErrorCode::peer_lost, "rank 2 died", "g", 2);
    return look_again;
  }
  void on_timeout(Duration budget) override {
    timeout_budget = budget;
    if (throw_at_timeout) throw col::Error(ErrorCode::timeout, "rank 4 did not arrive", "g", 4);
  }
  void on_news(std::uint32_t news) override {
    heard.push_back(news);
    if (throw_at_news) throw col::Error(ErrorCode::peer_lost, "rank 3 died", "g", 3);
  }
  std::vector<Duration> slow_calls;
  std::vector<std::uint32_t> heard;
  bool throw_at_news = false;
  Duration timeout_budget{};
  bool throw_at_slow = false;
  bool look_again = false;
  bool throw_at_timeout = true;
};

// Waits as every primitive does, for something that never comes.
[[noreturn]] void wait_forever(WaitContext& wait) {
  for (;;) {
    col::core::sleep_for(wait.slice());
    wait.check();
  }
}

}  // namespace

TEST_CASE("wait: what comes before it is done once, at the first check, and not by a call that never waits", "[job]") {
  int times = 0;
  {
    WaitContext(1s).before_waiting([&] { ++times; });
  }
  CHECK(times == 0);
  WaitContext wait(1s);
  wait.before_waiting([&] { ++times; });
  wait.check();
  wait.check();
  CHECK(wait.slice() > Duration::zero());
  CHECK(times == 1);
  WaitContext told(1s);
  told.before_waiting([&] { ++times; });
  told.waiting(-1, 3);
  CHECK(times == 2);
}

TEST_CASE("wait: an interrupt ends it within a few slices, by what it throws", "[job]") {
  int calls = 0;
  const col::Interrupt interrupt = [&] {
    if (++calls == 3) throw 42;
  };
  WaitContext wait(Deadline::after(20s), nullptr, nullptr, nullptr, &interrupt);
  const auto begin = Deadline::Clock::now();
  try {
    wait_forever(wait);
  } catch (int thrown) {
    CHECK(thrown == 42);
    CHECK(WaitContext::take_interruption() == std::current_exception());
    CHECK(WaitContext::take_interruption() == nullptr);
  }
  CHECK(calls == 3);
  CHECK(Deadline::Clock::now() - begin > 100ms);  // three slices, and not at every check
  CHECK(Deadline::Clock::now() - begin < col::test::kPrompt);
}

TEST_CASE("wait: what an interrupt has thrown is forgotten with the next wait that has one", "[job]") {
  const col::Interrupt interrupt = [] { throw 42; };
  WaitContext wait(Deadline::after(20s), nullptr, nullptr, nullptr, &interrupt);
  CHECK_THROWS_AS(wait_forever(wait), int);
  const WaitContext next(1s, nullptr, nullptr, nullptr, &interrupt);
  CHECK(WaitContext::take_interruption() == nullptr);
  const col::Interrupt none;
  WaitContext empty(Deadline::after(60ms), nullptr, nullptr, nullptr, &none);
  CHECK(error_of([&] { wait_forever(empty); }).code() == ErrorCode::timeout);
}

TEST_CASE("wait: a short one asks no interrupt", "[job]") {
  const col::test::JumpingTime time;  // stands still
  const col::Interrupt interrupt = [] { throw 42; };
  WaitContext wait(Deadline::after(20s), nullptr, nullptr, nullptr, &interrupt);
  for (int i = 0; i < 100; ++i) wait.check();
  SUCCEED();
}

TEST_CASE("deadline: always finite, never negative", "[job]") {
  const auto now = Deadline::Clock::now();
  CHECK(Deadline::after(-5s).expired());
  CHECK(Deadline::after(-5s).budget() == 0s);
  CHECK(Deadline::after(-5s).remaining() == 0s);
  CHECK(Deadline::after(0s).expired());
  const auto longest = Deadline::after(Duration::max());
  CHECK_FALSE(longest.expired());
  CHECK(longest.budget() == Deadline::kMaxBudget);
  CHECK(longest.remaining() <= Deadline::kMaxBudget);
  CHECK(longest.remaining() > Deadline::kMaxBudget - 1h);
  const auto minute = Deadline::after(1min);
  CHECK(minute.at() >= now + 1min);
  CHECK(minute.remaining() <= 1min);
}

TEST_CASE("wait context: a wait that is in time goes on", "[job]") {
  const auto page = ControlPage::in_memory(1);
  WaitContext wait(Deadline::after(1min), page.get(), &page->record(0));
  wait.check();
  CHECK(wait.page() == page.get());
  CHECK(wait.record() == &page->record(0));
  CHECK(wait.deadline().budget() == 1min);
}

TEST_CASE("wait context: a timeout says after how long and for what", "[job]") {
  WaitContext wait(Deadline::after(20ms));
  wait.describe("key 'world/3'");
  const auto error = error_of([&] { wait_forever(wait); });
  CHECK(error.code() == ErrorCode::timeout);
  CHECK(error.message().find("timed out after 20ms waiting for key 'world/3'; ") == 0);
  CHECK(error.message().find("COL_TIMEOUT") != std::string::npos);

  WaitContext asked(Deadline::after(0s));
  int questions = 0;
  asked.describe([&questions] { return ++questions == 1 ? "data from rank 3" : "the wrong thing"; });
  CHECK(error_of([&] { asked.check(); }).message().find("waiting for data from rank 3; ") != std::string::npos);

  WaitContext nameless(Deadline::after(0s));
  CHECK(error_of([&] { nameless.check(); }).message().find("waiting for another rank; ") != std::string::npos);
}

TEST_CASE("wait context: the observer names who is missing", "[job]") {
  const col::test::JumpingTime time;
  Observer observer;
  WaitContext wait(Deadline::after(5ms), nullptr, nullptr, &observer);
  const auto error = error_of([&] { wait_forever(wait); });
  CHECK(error.message() == "rank 4 did not arrive");
  CHECK(observer.timeout_budget == 5ms);
  CHECK(observer.slow_calls.empty());

  observer.throw_at_timeout = false;  // it has nothing to say: the wait ends all the same
  CHECK(error_of([&] { wait.check(); }).message().find("timed out after 5ms") == 0);
}

TEST_CASE("wait context: the observer is asked at 100 ms, then at doubling intervals", "[job]") {
  const col::test::JumpingTime time;
  Observer observer;
  WaitContext wait(Deadline::after(1'000ms), nullptr, nullptr, &observer);
  CHECK(error_of([&] { wait_forever(wait); }).code() == ErrorCode::timeout);
  CHECK(observer.slow_calls == std::vector<Duration>{100ms, 300ms, 700ms});
}

TEST_CASE("wait context: the intervals of the observer grow to 800 milliseconds and no further", "[job]") {
  const col::test::JumpingTime time;
  Observer observer;
  WaitContext wait(Deadline::after(4'800ms), nullptr, nullptr, &observer);
  CHECK(error_of([&] { wait_forever(wait); }).code() == ErrorCode::timeout);
  CHECK(observer.slow_calls == std::vector<Duration>{100ms, 300ms, 700ms, 1500ms, 2300ms, 3100ms, 3900ms, 4700ms});
}

TEST_CASE("wait context: what the observer throws ends the wait", "[job]") {
  Observer observer;
  observer.throw_at_slow = true;
  WaitContext wait(Deadline::after(20s), nullptr, nullptr, &observer);
  const auto error = error_of([&] { wait_forever(wait); });
  CHECK(error.code() == ErrorCode::peer_lost);
  CHECK(error.rank() == 2);
  CHECK_FALSE(wait.deadline().expired());
}

TEST_CASE("wait context: news are heard once each, at the next check", "[job]") {
  const auto page = ControlPage::in_memory(1);
  Observer observer;
  page->ring();
  WaitContext wait(Deadline::after(20s), page.get(), nullptr, &observer);
  CHECK(wait.news().word == &page->news());
  CHECK(wait.news().seen == 0);  // so that a sleep before the first check ends at once
  wait.check();
  wait.check();
  CHECK(observer.heard == std::vector<std::uint32_t>{1});
  CHECK(wait.news().seen == 1);
  page->ring();
  page->ring();
  wait.check();
  CHECK(observer.heard == std::vector<std::uint32_t>{1, 3});
  page->ring();
  observer.throw_at_news = true;
  CHECK(error_of([&] { wait.check(); }).rank() == 3);
  CHECK(observer.slow_calls.empty());
  WaitContext alone(Deadline::after(20s));
  alone.check();
  CHECK(alone.news().word == nullptr);
}

TEST_CASE("wait context: an abort is news, and its cause comes before what the observer finds", "[job]") {
  const auto page = ControlPage::in_memory(1);
  Observer observer;
  WaitContext wait(Deadline::after(20s), page.get(), nullptr, &observer);
  page->abort({ErrorCode::aborted, -1, "enough"});
  CHECK(page->news() == 1);
  CHECK(error_of([&] { wait.check(); }).message() == "enough");
  CHECK(observer.heard.empty());
  page->abort({ErrorCode::aborted, -1, "more"});  // the first cause stays
  CHECK(page->news() == 1);
}

TEST_CASE("wait context: the job's abort cause comes before the timeout", "[job]") {
  const auto page = ControlPage::in_memory(1);
  Observer observer;
  WaitContext wait(Deadline::after(0s), page.get(), nullptr, &observer);
  page->abort({ErrorCode::peer_lost, 6, "rank 6 died of signal 9"});
  const auto error = error_of([&] { wait.check(); });
  CHECK(error.code() == ErrorCode::peer_lost);
  CHECK(error.rank() == 6);
  CHECK(error.message() == "rank 6 died of signal 9");
  CHECK(observer.timeout_budget == 0s);  // never asked
}

TEST_CASE_METHOD(core_test::PageFile, "wait context: an abort in another process ends a wait at once", "[job]") {
  core_test::Child child([this](core_test::Child& self) {
    const auto mine = ControlPage::open(path, "job");
    WaitContext wait(Deadline::after(60s), mine.get());
    self.signal();
    try {
      wait_forever(wait);
    } catch (const col::Error& error) {
      return error.code() == ErrorCode::mismatch && error.rank() == 1 ? 0 : 1;
    }
  });
  REQUIRE(child.wait_for_signal());
  page->abort({ErrorCode::mismatch, 1, "rank 1 called barrier"});
  const auto limit = Deadline::after(col::test::kDeadline);
  CHECK(child.wait() == 0);
  CHECK_FALSE(limit.expired());
}

TEST_CASE("wait context: a slice ends at the deadline, at the next look, and after 50 ms", "[job]") {
  WaitContext long_wait(Deadline::after(1h));
  CHECK(long_wait.slice() == 50ms);
  WaitContext short_wait(Deadline::after(10ms));
  CHECK(short_wait.slice() <= 10ms);
  WaitContext ended(Deadline::after(0s));
  CHECK(ended.slice() == 0s);
  WaitContext until_told(Deadline::after(1h));
  until_told.sleep_until_told();
  CHECK(until_told.slice() > 30min);

  Observer observer;
  WaitContext observed(Deadline::after(1h), nullptr, nullptr, &observer);
  const auto limit = Deadline::after(20s);
  bool bounded = true;
  while (observed.slice() > 0s && !limit.expired()) bounded = bounded && observed.slice() <= 50ms;
  CHECK(bounded);
  CHECK(observed.slice() == 0s);
  observed.check();
  CHECK(observer.slow_calls.size() == 1);
  CHECK(observed.slice() > 0s);
}

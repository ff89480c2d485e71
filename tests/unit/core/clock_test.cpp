// core/clock: what it makes of the kernel's time, and that all of it goes to a scheduler where there is one.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/job.hpp>

#include "core/clock/clock.hpp"
#include "core/clock/lock.hpp"
#include "core/unique_fd.hpp"
#include "support/catch.hpp"
#include "support/same_process.hpp"

using col::Deadline;
using col::Duration;
using col::core::Clock;
using col::core::Condition;
using col::core::Mutex;
using col::core::Thread;
using namespace std::chrono_literals;
namespace core = col::core;

namespace {

// Far beyond what any test takes: who waits so long hangs.
constexpr Duration kForEver = 24h;

using Steady = std::chrono::steady_clock;

std::uint64_t ns_of(Steady::time_point time) {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(time.time_since_epoch()).count());
}

core::UniqueFd make_event() {
  core::UniqueFd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  REQUIRE(event);
  return event;
}

core::UniqueFd epoll_over(int fd) {
  core::UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{.events = EPOLLIN, .data = {.u64 = 7}};
  REQUIRE(::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event) == 0);
  return epoll;
}

// Notes what it is asked, and lets time jump to the end of every wait.
class Noting final : public col::test::SameProcess {
 public:
  Noting() { core::installed_scheduler = this; }
  ~Noting() override { core::installed_scheduler = nullptr; }

  // A name for an address, for the notes.
  void name(const void* address, std::string name) { names_[address] = std::move(name); }
  std::vector<std::string> take_notes() { return std::exchange(notes_, {}); }

  // Called in each block, before the time jumps.
  std::function<void()> meanwhile = [] {};
  int poll_result = 0;
  Clock::time_point time{1h};

  Time now() noexcept override { return time; }
  std::chrono::system_clock::time_point wall_now() noexcept override {
    return std::chrono::system_clock::time_point(5h);
  }
  void yield() noexcept override { notes_.push_back("yield"); }
  void block(const void* address, Time until) noexcept override {
    notes_.push_back(fmt::format("block {}{}", names_[address], until_text(until)));
    meanwhile();
    if (until != Time::max()) time = until;
  }
  void wake(const void* address, bool all) noexcept override {
    notes_.push_back(fmt::format("wake {} of {}", all ? "all" : "one", names_[address]));
  }
  int poll(std::span<pollfd> descriptors, Time until) noexcept override {
    notes_.push_back(fmt::format("poll {}{}", descriptors.size(), until_text(until)));
    errno = EINTR;
    return poll_result;
  }
  int start_thread(std::function<void()> body) override {
    bodies_.push_back(std::move(body));
    return static_cast<int>(bodies_.size()) - 1;
  }
  void join_thread(int number) noexcept override {
    notes_.push_back(fmt::format("join {}", number));
    bodies_[static_cast<std::size_t>(number)]();
  }

 private:
  std::string until_text(Time until) const {
    if (until == Time::max()) return "";
    return fmt::format(" for {} ms", std::chrono::duration_cast<std::chrono::milliseconds>(until - time).count());
  }

  std::map<const void*, std::string> names_{{nullptr, "nothing"}};
  std::vector<std::string> notes_;
  std::vector<std::function<void()>> bodies_;
};

using Notes = std::vector<std::string>;

}  // namespace

// ---- The kernel's

TEST_CASE("clock: it is the monotonic clock that all processes share, and the coarse one is not ahead", "[clock]") {
  const auto before = Steady::now();
  const auto now = Clock::now();
  const auto between = Steady::now();
  const std::uint64_t ns = core::clock_ns();
  const std::uint64_t coarse = core::coarse_clock_ns();
  const auto after = Steady::now();
  CHECK(before <= now);
  CHECK(now <= between);
  CHECK(ns_of(between) <= ns);
  CHECK(ns <= ns_of(after));
  CHECK(coarse <= ns_of(after));
  CHECK(coarse > ns - std::uint64_t{60'000'000'000});
  CHECK(std::chrono::abs(core::wall_now() - std::chrono::system_clock::now()) < 1h);
}

TEST_CASE("clock: a sleep is whole, also where signals come", "[clock]") {
  struct sigaction quiet {
  }, before{};
  quiet.sa_handler = [](int) {};
  REQUIRE(::sigaction(SIGUSR1, &quiet, &before) == 0);
  std::atomic<bool> sleeps{true};
  std::thread alarm([&, sleeper = ::pthread_self()] {
    for (; sleeps; std::this_thread::yield()) ::pthread_kill(sleeper, SIGUSR1);
  });
  const auto end = Clock::now() + 20ms;
  core::sleep_until(end);
  CHECK(Clock::now() >= end);
  const auto begin = Clock::now();
  core::sleep_for(20ms);
  CHECK(Clock::now() - begin >= 20ms);
  sleeps = false;
  alarm.join();
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST_CASE("clock: a sleep until a time that is over, or for less than nothing, is none", "[clock]") {
  core::sleep_until({});
  core::sleep_until(Clock::now() - 1h);
  core::sleep_for(-1h);
  core::sleep_for(0s);
  core::yield();
}

TEST_CASE("clock: a wait on a word ends when it has another value, when it is woken, and with its time", "[clock]") {
  std::atomic<std::uint32_t> word{1};
  core::wait_on_word(word, 0, kForEver);
  core::wait_on_word(word, 1, 1ms);
  core::wait_on_word(word, 1, -1h);
  // Two take turns, so that each sleeps, and is woken, again and again.
  constexpr std::uint32_t kTurns = 2000;
  const auto play = [&](std::uint32_t side) {
    for (std::uint32_t turn = side; turn < kTurns; turn += 2) {
      for (std::uint32_t seen = word; seen != turn; seen = word) core::wait_on_word(word, seen, kForEver);
      word = turn + 1;
      core::wake_word(word);
    }
  };
  word = 0;
  std::thread other([&] { play(1); });
  play(0);
  other.join();
  CHECK(word == kTurns);
}

TEST_CASE("clock: a wait on two words ends when either has another value, or is woken", "[clock]") {
  std::atomic<std::uint32_t> own{1}, shared{1};
  core::wait_on_words(own, 0, {&shared, 1}, kForEver);
  core::wait_on_words(own, 1, {&shared, 1}, 1ms);
  core::wait_on_words(own, 1, {&shared, 1}, -1h);
  core::wait_on_words(own, 1, {}, 1ms);
  // Each turn wakes by the other word. A machine that cannot wait on two has no more than its time.
  errno = 0;
  const bool has_both = ::syscall(449, nullptr, 0, 0, nullptr, 0) == -1 && errno == EINVAL;
  const Duration at_most = has_both ? kForEver : 1ms;
  constexpr std::uint32_t kTurns = 1000;
  std::atomic<std::uint32_t> woken{0};
  std::vector<std::thread> sleepers;
  std::vector<std::atomic<std::uint32_t>> doorbells(3);
  for (auto& doorbell : doorbells) {
    sleepers.emplace_back([&] {
      std::uint32_t rung = 0;
      for (std::uint32_t seen = 1; seen < kTurns;) {
        core::wait_on_words(doorbell, rung, {&shared, seen}, at_most);
        rung = doorbell;
        const std::uint32_t now = shared;
        if (now == seen) continue;
        seen = now;
        ++woken;
        core::wake_word(woken);
      }
    });
  }
  for (std::uint32_t turn = 2; turn <= kTurns; ++turn) {
    doorbells[turn % doorbells.size()] = turn;
    core::wake_word(doorbells[turn % doorbells.size()]);
    const std::uint32_t all = woken + static_cast<std::uint32_t>(doorbells.size());
    shared = turn;
    core::wake_all_on_word(shared);
    for (std::uint32_t seen = woken; seen < all; seen = woken) core::wait_on_word(woken, seen, kForEver);
  }
  for (std::thread& sleeper : sleepers) sleeper.join();
  CHECK(woken == (kTurns - 1) * doorbells.size());
}

TEST_CASE("clock: a sleep is as long on a machine that has been up for years", "[clock]") {
  // In a namespace whose clock is ahead, for the children of this process. Where that is forbidden, there is nothing to
  // see.
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWTIME) != 0) ::_exit(0);
    {
      std::ofstream offsets("/proc/self/timens_offsets");
      offsets << "monotonic 100000000 0\n";
    }
    const pid_t within = ::fork();
    if (within == 0) {
      const auto begin = Clock::now();
      core::sleep_for(20ms);
      ::_exit(Clock::now() - begin >= 20ms ? 0 : 1);
    }
    int status = -1;
    ::waitpid(within, &status, 0);
    ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 2);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("clock: a wait for descriptors says which are ready, or none after its time", "[clock]") {
  const core::UniqueFd event = make_event(), epoll = epoll_over(event.get());
  std::array<pollfd, 2> watched{pollfd{-1, POLLIN, 0}, pollfd{event.get(), POLLIN, 0}};
  std::array<epoll_event, 4> events{};
  const auto begin = Clock::now();
  CHECK(core::poll_for(watched, 1ms) == 0);
  CHECK(core::epoll_for(epoll.get(), events, 1ms) == 0);
  CHECK(Clock::now() - begin >= 2ms);
  CHECK(core::poll_for(watched, -1h) == 0);
  CHECK(core::epoll_for(epoll.get(), events, -1h) == 0);
  REQUIRE(::eventfd_write(event.get(), 1) == 0);
  CHECK(core::poll_for(watched, kForEver) == 1);
  CHECK(watched[1].revents == POLLIN);
  CHECK(core::epoll_for(epoll.get(), events, Duration::max()) == 1);
  CHECK(events[0].data.u64 == 7);
}

TEST_CASE("clock: threads, locks and conditions are the standard library's", "[clock]") {
  Mutex mutex;
  Condition changed;
  int turn = 0;  // whose it is: theirs where it is odd
  constexpr int kTurns = 100;
  const auto play = [&](int side) {
    for (int i = 0; i < kTurns; ++i) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return turn % 2 == side; });
      ++turn;
      changed.notify_one();
    }
  };
  Thread other([&] { play(1); });
  CHECK(other.joinable());
  Thread moved(std::move(other));
  CHECK_FALSE(other.joinable());
  play(0);
  moved.join();
  CHECK_FALSE(moved.joinable());
  CHECK(turn == 2 * kTurns);

  std::unique_lock lock(mutex);
  const auto begin = Clock::now();
  CHECK_FALSE(changed.wait_for(lock, 1ms, [] { return false; }));
  CHECK_FALSE(changed.wait_until(lock, begin + 2ms, [] { return false; }));
  CHECK(Clock::now() >= begin + 2ms);
  CHECK(lock.owns_lock());
  CHECK(changed.wait_for(lock, kForEver, [] { return true; }));
  CHECK(changed.wait_until(lock, begin, [] { return true; }));

  std::promise<void> may_end;
  Thread detached([end = may_end.get_future().share()] { end.wait(); });
  detached.detach();
  CHECK_FALSE(detached.joinable());
  may_end.set_value();
}

// ---- A scheduler's

TEST_CASE("clock: a scheduler says what time it is, to deadlines too", "[clock]") {
  Noting simulated;
  CHECK(Clock::now() == Clock::time_point(1h));
  CHECK(core::clock_ns() == 3'600'000'000'000);
  CHECK(core::coarse_clock_ns() == 3'600'000'000'000);
  CHECK(core::wall_now() == std::chrono::system_clock::time_point(5h));
  const Deadline deadline = Deadline::after(5min);
  CHECK(deadline.remaining() == 5min);
  simulated.time += 5min - 1ns;
  CHECK_FALSE(deadline.expired());
  simulated.time += 1ns;
  CHECK(deadline.expired());
  CHECK(simulated.take_notes().empty());
}

TEST_CASE("clock: sleeps and yields are a scheduler's", "[clock]") {
  Noting simulated;
  core::sleep_for(1h);
  core::sleep_for(0s);
  core::sleep_until(simulated.time + 2ms);
  core::yield();
  CHECK(simulated.take_notes() == Notes{"block nothing for 3600000 ms", "block nothing for 2 ms", "yield"});
  CHECK(simulated.time == Clock::time_point(2h + 2ms));
}

TEST_CASE("clock: a scheduler blocks who waits on a word, if it has that value", "[clock]") {
  Noting simulated;
  std::atomic<std::uint32_t> word{1};
  simulated.name(&word, "word");
  core::wait_on_word(word, 0, kForEver);
  CHECK(simulated.take_notes().empty());
  core::wait_on_word(word, 1, 50ms);
  core::wake_word(word);
  CHECK(simulated.take_notes() == Notes{"block word for 50 ms", "wake one of word"});
  std::atomic<std::uint32_t> other{1};
  simulated.name(&other, "other");
  core::wait_on_words(word, 1, {&other, 1}, 50ms);
  core::wake_all_on_word(other);
  CHECK(simulated.take_notes() == Notes{"block word for 50 ms", "wake all of other"});
}

TEST_CASE("clock: a scheduler says which descriptors are ready", "[clock]") {
  Noting simulated;
  const core::UniqueFd event = make_event(), epoll = epoll_over(event.get());
  std::array<pollfd, 2> watched{};
  std::array<epoll_event, 4> events{};
  for (const int result : {0, -1, 2}) {
    simulated.poll_result = result;
    errno = 0;
    CHECK(core::poll_for(watched, 10ms) == result);
    CHECK(errno == EINTR);
    CHECK(simulated.take_notes() == Notes{"poll 2 for 10 ms"});
  }
  core::poll_for(watched, Deadline::kMaxBudget);
  core::epoll_for(epoll.get(), events, Duration::max());
  CHECK(simulated.take_notes() == Notes{"poll 2", "poll 1"});
  // Its word comes first: what it does not let come is not there yet.
  REQUIRE(::eventfd_write(event.get(), 1) == 0);
  for (const int result : {0, -1, 1}) {
    simulated.poll_result = result;
    CHECK(core::epoll_for(epoll.get(), events, 10ms) == result);
    CHECK(simulated.take_notes() == Notes{"poll 1 for 10 ms"});
  }
  CHECK(events[0].data.u64 == 7);
}

TEST_CASE("clock: a scheduler blocks who waits for a lock until it is free", "[clock]") {
  Noting simulated;
  Mutex mutex;
  simulated.name(&mutex, "mutex");
  mutex.lock();
  mutex.unlock();
  CHECK(simulated.take_notes() == Notes{"wake one of mutex"});
  std::promise<void> is_locked, may_unlock;
  std::thread holder([&] {
    mutex.lock();
    is_locked.set_value();
    may_unlock.get_future().wait();
    mutex.unlock();
  });
  is_locked.get_future().wait();
  CHECK_FALSE(mutex.try_lock());
  int blocked = 0;
  simulated.meanwhile = [&] {
    if (++blocked < 2) return;  // woken for no reason
    may_unlock.set_value();
    holder.join();
  };
  mutex.lock();
  CHECK(simulated.take_notes() == Notes{"block mutex", "block mutex", "wake one of mutex"});
  mutex.unlock();
}

TEST_CASE("clock: a scheduler blocks who waits on a condition, without the lock", "[clock]") {
  Noting simulated;
  Mutex mutex;
  Condition changed;
  simulated.name(&mutex, "mutex");
  simulated.name(&changed, "condition");
  std::unique_lock lock(mutex);
  bool is_ready = false;
  simulated.meanwhile = [&] {
    const std::lock_guard free(mutex);
    is_ready = true;
  };
  changed.wait(lock, [&] { return is_ready; });
  CHECK(lock.owns_lock());
  CHECK(simulated.take_notes() == Notes{"wake one of mutex", "block condition", "wake one of mutex"});

  simulated.meanwhile = [] {};
  const auto begin = simulated.time;
  CHECK_FALSE(changed.wait_for(lock, 10ms, [] { return false; }));
  CHECK(simulated.time == begin + 10ms);
  CHECK(simulated.take_notes() == Notes{"wake one of mutex", "block condition for 10 ms"});

  changed.notify_one();
  changed.notify_all();
  CHECK(simulated.take_notes() == Notes{"wake one of condition", "wake all of condition"});
  lock.unlock();
}

TEST_CASE("clock: a scheduler runs the threads, and ends their wait", "[clock]") {
  Noting simulated;
  int runs = 0;
  Thread first([&] { ++runs; });
  Thread second;
  second = Thread([&] { runs += 10; });
  CHECK(first.joinable());
  CHECK(second.joinable());
  CHECK(runs == 0);
  second.join();
  CHECK(runs == 10);
  first.join();
  CHECK(runs == 11);
  CHECK_FALSE(first.joinable());
  CHECK(simulated.take_notes() == Notes{"join 1", "join 0"});
  Thread detached([] {});
  detached.detach();
  CHECK_FALSE(detached.joinable());
}

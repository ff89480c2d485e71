// Signals arrive all the time, at every rank and in every state: system calls are interrupted, and nothing is lost.
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <system_error>

#include <fmt/format.h>

#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/list.hpp"
#include "colcheck/properties/program.hpp"
#include "core/clock/clock.hpp"

namespace col::colcheck {
namespace {

// Case::variant: what the storm hits.
enum Target : std::uint64_t {
  kProgram,   // calls
  kCreation,  // the making and destroying of groups
  kTargetCount
};
constexpr std::size_t kSignalLength = 10;
constexpr int kCreations = 3;
// A case goes on until every rank has had so many.
constexpr std::uint64_t kEnough = 20;
constexpr int kMostRounds = 200;
constexpr std::chrono::microseconds kInterval(150);
constexpr std::chrono::milliseconds kNap(2);  // of the rank that the others wait for, so that they sleep

void add_signals(Draw& draw) {
  for (const std::string& backend : draw.backends()) {
    for (std::uint64_t target = 0; target < kTargetCount; ++target) {
      const int wanted = !draw.quick() ? kPrimitiveCount : target == kCreation ? 1 : 3;
      for (int i = 0; i < wanted; ++i) draw.add(backend, primitive_in_turn(draw.number() * 3), target);
    }
  }
}

// The handler's, which can have nothing else: signals that this thread has had.
thread_local std::atomic<std::uint64_t> arrived{0};

void on_signal(int /*signal*/) {
  arrived.fetch_add(1, std::memory_order_relaxed);  // relaxed: read by the same thread
}

// SIGUSR1 has our handler for as long as there is one of these, without SA_RESTART. Several may be, when ranks are
// threads: the first one sets it up, and the last one restores what was there.
class Handler {
 public:
  Handler() {
    const std::lock_guard lock(mutex_);
    if (users_++ > 0) return;
    struct sigaction action {};
    action.sa_handler = &on_signal;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGUSR1, &action, &before_);
  }
  ~Handler() {
    const std::lock_guard lock(mutex_);
    if (--users_ > 0) return;
    // Takes off what has been sent and has not arrived: nobody else expects it.
    ::signal(SIGUSR1, SIG_IGN);
    ::sigaction(SIGUSR1, &before_, nullptr);
  }
  Handler(const Handler&) = delete;
  Handler& operator=(const Handler&) = delete;

 private:
  inline static std::mutex mutex_;
  inline static int users_ = 0;
  inline static struct sigaction before_ {};
};

// Sends SIGUSR1 again and again.
class Timer {
 public:
  // To the thread that makes it, or to its process: then to any thread that has not blocked it.
  explicit Timer(bool to_thread) {
    sigevent event{};
    event.sigev_notify = to_thread ? SIGEV_THREAD_ID : SIGEV_SIGNAL;
    event.sigev_signo = SIGUSR1;
    if (to_thread) event._sigev_un._tid = static_cast<pid_t>(::syscall(SYS_gettid));  // sigev_notify_thread_id
    if (::timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0)
      throw std::system_error(errno, std::generic_category(), "timer_create");
    const timespec interval{0, std::chrono::nanoseconds(kInterval).count()};
    const itimerspec times{interval, interval};
    ::timer_settime(timer_, 0, &times, nullptr);
  }
  ~Timer() { ::timer_delete(timer_); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  timer_t timer_{};
};

struct Storm {
  Handler handler;
  Timer at_thread{true}, at_process{false};
};

// What is wrong with one round of the case.
std::string signal_round_of(Rank& rank, const Case& c, std::uint64_t round) {
  const std::uint64_t seed = mix(c.seed, round);
  const auto late = static_cast<int>(seed % static_cast<std::uint64_t>(rank.size()));
  if (rank.rank() == late) core::sleep_for(kNap);
  if (c.variant == kProgram) return run_program(rank.group(), {.about = c.primitive}, seed, kSignalLength);
  std::string problem;
  for (int i = 0; i < kCreations; ++i) {
    Group group = rank.make_group();
    const std::string next = run_program(group, {.about = c.primitive}, mix(seed, 1), 2);
    if (problem.empty()) problem = next;
    rank.drop(group);
  }
  return problem;
}

Finding run_signals(Rank& rank, const Case& c) {
  arrived = 0;
  const Storm storm;
  std::string problem;
  std::vector<std::uint64_t> fewest{0};
  for (std::uint64_t round = 0; fewest[0] < kEnough; ++round) {
    if (round == kMostRounds) return Finding::fail(fmt::format("only {} signals have come", fewest[0]));
    const std::string next = signal_round_of(rank, c, round);
    if (problem.empty()) problem = next;
    fewest[0] = arrived;
    rank.group().allreduce(fewest, {.op = ReduceOp::min});
  }
  return Finding::of(std::move(problem));
}

}  // namespace

const Property kSignals =
    in_group("signals", "a storm of signals at every rank disturbs no call and no making of a group", &add_signals,
             &run_signals, OnGpus::nothing, 2);

}  // namespace col::colcheck

#include "colbench/machine/latency.hpp"

#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "colbench/stats/sample.hpp"
#include "common/unique_fd.hpp"

namespace col::colbench {
namespace {

constexpr int kMostMilliseconds = 1000;  // that a poll may last

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) return;
    out.reset(ends[0]);
    in.reset(ends[1]);
  }
  tools::UniqueFd out, in;
};

bool read_time(int fd, std::int64_t& value) {
  pollfd ready{fd, POLLIN, 0};
  return ::poll(&ready, 1, kMostMilliseconds) == 1 && ::read(fd, &value, sizeof value) == sizeof value;
}

bool write_time(int fd, std::int64_t value) {
  return ::write(fd, &value, sizeof value) == sizeof value;
}

// Binds the calling thread to the core that it is on.
bool bind_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  return ::sched_setaffinity(0, sizeof set, &set) == 0;
}

// So short that some of the bursts are not disturbed.
constexpr int kTurns = 20, kBursts = 500;
constexpr int kSpins = 200;  // then the other one may need this core
constexpr Duration kMostForTurns = std::chrono::seconds(2);

// Shared by the two players and the thread that waits for them: a player that never gets its core outlives the wait.
struct Game {
  std::array<int, 2> cpus = {};
  std::atomic<int> turn{0};
  std::atomic<bool> goes_on{true};
  std::mutex mutex;
  std::condition_variable changed;
  int ended = 0;                // players
  std::atomic<double> best{0};  // of the bursts that are whole; written by the second one
};

void play(Game& game, int side) {
  const bool same_core = game.cpus[0] == game.cpus[1];
  if (!bind_to(game.cpus[static_cast<std::size_t>(side)])) game.goes_on = false;
  for (int burst = 0; burst < kBursts && game.goes_on; ++burst) {
    const std::int64_t begin = now_ns();
    for (int i = side; i < kTurns && game.goes_on; i += 2) {
      const int mine = burst * kTurns + i;
      for (int spins = 0; game.turn.load(std::memory_order_acquire) != mine && game.goes_on; ++spins)
        if (same_core || spins > kSpins) ::sched_yield();
      game.turn.store(mine + 1, std::memory_order_release);
    }
    const double seconds = static_cast<double>(now_ns() - begin) * 1e-9 / kTurns, best = game.best;
    if (side == 1 && game.goes_on && (best == 0 || seconds < best)) game.best = seconds;
  }
  const std::lock_guard lock(game.mutex);
  ++game.ended;
  game.changed.notify_one();
}

constexpr int kTries = 5;  // the best counts: one may be interrupted
constexpr int kSteps = 50'000;
constexpr std::size_t kCopied = std::size_t{4} << 20;
// What probes of a quiet machine differ by: its clock has a few steps, 8 % apart on the machine of
// docs/benchmarking.md.
constexpr double kSteady = 0.10;

template <class Work>
double best_of(Work work) {
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    const std::int64_t begin = now_ns();
    work();
    const double seconds = static_cast<double>(now_ns() - begin) * 1e-9;
    best = i == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

struct Kind {
  const char* name;
  double Probe::*seconds;
};
constexpr std::array kKinds = {Kind{"spin", &Probe::spin_seconds}, Kind{"copy", &Probe::copy_seconds}};

double median_of(const Results& results, double Probe::*seconds) {
  std::vector<double> values;
  for (const Probe& probe : results.probes) values.push_back(probe.*seconds);
  return median_in_place(values);
}

}  // namespace

std::int64_t now_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

OnCores::OnCores(const cpu_set_t& cpus) noexcept {
  CPU_ZERO(&before_);
  changed_ = CPU_COUNT(&cpus) > 0 && ::sched_getaffinity(0, sizeof before_, &before_) == 0 &&
             ::sched_setaffinity(0, sizeof cpus, &cpus) == 0;
}

OnCores::~OnCores() {
  if (changed_) ::sched_setaffinity(0, sizeof before_, &before_);
}

double measure_wake_up() {
  constexpr int kRounds = 101;
  const Pipe there, back;
  if (!there.in || !back.in) return 0;
  std::vector<double> latencies;
  std::thread sleeper([&] {
    std::int64_t sent = 0;
    for (int i = 0; i < kRounds && read_time(there.out.get(), sent); ++i) {
      latencies.push_back(static_cast<double>(now_ns() - sent) * 1e-9);
      if (!write_time(back.in.get(), 0)) return;
    }
  });
  std::int64_t answer = 0;
  for (int i = 0; i < kRounds; ++i) {
    // Long enough for the other one to be asleep when it is called.
    const std::int64_t until = now_ns() + 50'000;
    while (now_ns() < until) {
    }
    if (!write_time(there.in.get(), now_ns()) || !read_time(back.out.get(), answer)) break;
  }
  sleeper.join();
  return median(std::move(latencies));
}

double shortest_turn(int first_cpu, int second_cpu, Duration limit) {
  const auto game = std::make_shared<Game>();
  game->cpus = {first_cpu, second_cpu};
  try {
    for (int side = 0; side < 2; ++side) std::thread([game, side] { play(*game, side); }).detach();
  } catch (const std::system_error&) {  // no more threads
    game->goes_on = false;
    return 0;
  }
  std::unique_lock lock(game->mutex);
  game->changed.wait_for(lock, limit, [&] { return game->ended == 2; });
  game->goes_on = false;
  return game->best;
}

double measure_hand_over() {
  cpu_set_t usable;
  if (::sched_getaffinity(0, sizeof usable, &usable) != 0) return 0;
  int first = -1, second = -1;
  for (int cpu = 0; cpu < CPU_SETSIZE && second < 0; ++cpu) {
    if (!CPU_ISSET(static_cast<unsigned>(cpu), &usable)) continue;
    (first < 0 ? first : second) = cpu;
  }
  return second < 0 ? 0 : shortest_turn(first, second, kMostForTurns);
}

double measure_switch() {
  const int cpu = ::sched_getcpu();
  return shortest_turn(cpu, cpu, kMostForTurns);
}

Probe take_probe() {
  static volatile std::uint64_t kept = 1;
  static std::vector<char> from(kCopied, 1), to(kCopied, 2);
  Probe probe;
  probe.spin_seconds = best_of([] {
    std::uint64_t x = kept;
    for (int i = 0; i < kSteps; ++i) x = x * 6364136223846793005U + 1442695040888963407U;  // each waits for the last
    kept = x;
  });
  probe.copy_seconds = best_of([] {
    std::memcpy(to.data(), from.data(), kCopied);
    kept = static_cast<std::uint64_t>(to[kept % kCopied]);
  });
  return probe;
}

std::string state_text(const Results& results) {
  const std::vector<Probe>& probes = results.probes;
  std::string worst;
  double most = 0;
  std::size_t changed = 0;
  for (std::size_t launch = 0; launch + 1 < probes.size(); ++launch) {
    bool is_other = false;
    for (const Kind& kind : kKinds) {
      const double middle = median_of(results, kind.seconds);
      const auto [low, high] = std::minmax(probes[launch].*kind.seconds, probes[launch + 1].*kind.seconds);
      // Both times: what disturbs one probe may have been over, or not begun, while the ranks ran.
      const double slower = middle > 0 ? low / middle - 1 : 0, faster = middle > 0 ? middle / high - 1 : 0;
      const double difference = std::max(slower, faster);
      if (difference <= kSteady) continue;
      is_other = true;
      if (difference <= most) continue;
      most = difference;
      worst = fmt::format("a fixed {} was {:.0f} % {} around launch {}", kind.name, 100 * difference,
                          slower > faster ? "slower" : "faster", launch + 1);
    }
    changed += is_other;
  }
  if (changed == 0) return {};
  return fmt::format("the machine changed its state in {} of {} launches: {} than in the middle of the run", changed,
                     probes.size() - 1, worst);
}

std::optional<double> state_difference(const Results& a, const Results& b) {
  double most = 0;
  for (const Kind& kind : kKinds) {
    const double of_a = median_of(a, kind.seconds), of_b = median_of(b, kind.seconds);
    if (of_a <= 0 || of_b <= 0) return std::nullopt;
    most = std::max({most, of_a / of_b - 1, of_b / of_a - 1});
  }
  return most;
}

}  // namespace col::colbench

#include "colbench/machine/latency.hpp"

#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "colbench/rank/start_line.hpp"
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

}  // namespace

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
  if (latencies.empty()) return 0;
  std::nth_element(latencies.begin(), latencies.begin() + static_cast<std::ptrdiff_t>(latencies.size() / 2),
                   latencies.end());
  return latencies[latencies.size() / 2];
}

namespace {

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
  int ended = 0;    // players
  double best = 0;  // written by the second one
};

void play(Game& game, int side) {
  const bool same_core = game.cpus[0] == game.cpus[1];
  double best = 0;
  if (!bind_to(game.cpus[static_cast<std::size_t>(side)])) game.goes_on = false;
  for (int burst = 0; burst < kBursts && game.goes_on; ++burst) {
    const std::int64_t begin = now_ns();
    for (int i = side; i < kTurns && game.goes_on; i += 2) {
      const int mine = burst * kTurns + i;
      for (int spins = 0; game.turn.load(std::memory_order_acquire) != mine && game.goes_on; ++spins)
        if (same_core || spins > kSpins) ::sched_yield();
      game.turn.store(mine + 1, std::memory_order_release);
    }
    const double seconds = static_cast<double>(now_ns() - begin) * 1e-9 / kTurns;
    if (best == 0 || seconds < best) best = seconds;
  }
  const std::lock_guard lock(game.mutex);
  if (side == 1) game.best = best;
  ++game.ended;
  game.changed.notify_one();
}

}  // namespace

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
  const bool done = game->changed.wait_for(lock, limit, [&] { return game->ended == 2; }) && game->goes_on;
  game->goes_on = false;
  return done ? game->best : 0;
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

}  // namespace col::colbench

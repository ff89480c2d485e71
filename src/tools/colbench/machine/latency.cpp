#include "colbench/machine/latency.hpp"

#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
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

// Two threads, bound to those cores, give each other a turn: the shortest of many bursts, per turn. 0 when they cannot
// be bound.
double shortest_turn(int first_cpu, int second_cpu) {
  // So short that some of the bursts are not disturbed.
  constexpr int kTurns = 20, kBursts = 500;
  constexpr int kSpins = 200;  // then the other one may need this core
  std::atomic<int> turn{0};
  std::atomic<bool> bound{true};
  double best = 0;
  const auto play = [&](int side) {
    if (!bind_to(side == 0 ? first_cpu : second_cpu)) bound = false;
    for (int burst = 0; burst < kBursts && bound; ++burst) {
      const std::int64_t begin = now_ns();
      for (int i = side; i < kTurns && bound; i += 2) {
        const int mine = burst * kTurns + i;
        for (int spins = 0; turn.load(std::memory_order_acquire) != mine && bound; ++spins)
          if (first_cpu == second_cpu || spins > kSpins) ::sched_yield();
        turn.store(mine + 1, std::memory_order_release);
      }
      const double seconds = static_cast<double>(now_ns() - begin) * 1e-9 / kTurns;
      if (side == 1 && (best == 0 || seconds < best)) best = seconds;
    }
  };
  std::thread first(play, 0), second(play, 1);
  first.join();
  second.join();
  return bound ? best : 0;
}

}  // namespace

double measure_hand_over() {
  cpu_set_t usable;
  if (::sched_getaffinity(0, sizeof usable, &usable) != 0) return 0;
  int first = -1, second = -1;
  for (int cpu = 0; cpu < CPU_SETSIZE && second < 0; ++cpu) {
    if (!CPU_ISSET(static_cast<unsigned>(cpu), &usable)) continue;
    (first < 0 ? first : second) = cpu;
  }
  return second < 0 ? 0 : shortest_turn(first, second);
}

double measure_switch() {
  const int cpu = ::sched_getcpu();
  return shortest_turn(cpu, cpu);
}

}  // namespace col::colbench

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

double measure_switch() {
  constexpr int kTurns = 2000, kTries = 5;
  const int cpu = ::sched_getcpu();
  double best = 0;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    std::atomic<int> turn{0};
    std::atomic<bool> bound{true};
    double seconds = 0;
    const auto play = [&](int side) {
      if (!bind_to(cpu)) bound = false;
      const std::int64_t begin = now_ns();
      for (int i = side; i < kTurns && bound; i += 2) {
        while (turn.load(std::memory_order_acquire) != i && bound) ::sched_yield();
        turn.store(i + 1, std::memory_order_release);
      }
      if (side == 1) seconds = static_cast<double>(now_ns() - begin) * 1e-9 / kTurns;
    };
    std::thread first(play, 0), second(play, 1);
    first.join();
    second.join();
    if (!bound) return 0;
    if (best == 0 || seconds < best) best = seconds;
  }
  return best;
}

}  // namespace col::colbench

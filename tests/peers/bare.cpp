// What the machine could do at best, in the cells where that is known: no contestant, only threads of one process that
// see the buffers of all ranks and never wait for each other.
//
//   1 MiB and more   read every input once, write every output once; a send is one core's memcpy
//   8 B at n=2       a cache line that goes from one core to another and back (half of it for a round trip's half)
//
// Takes what the drivers take, and CONTEST_RANKS.
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bare_tasks.hpp"
#include "cell.hpp"
#include "options.hpp"
#include "start_line.hpp"
#include "statistics.hpp"

namespace {

using contest::Cell;
using contest::Operation;
using contest::StartLine;
using contest::Stores;

constexpr std::size_t kLarge = std::size_t(1) << 20;

void bind_to_processor(int index) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) return;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &usable) && index-- == 0) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      pthread_setaffinity_np(pthread_self(), sizeof one, &one);
      return;
    }
}

constexpr int kLineTrips = 50;

// A cache line that is handed over and back.
struct Ball {
  alignas(128) std::atomic<std::uint32_t> turn{0};
};

void bounce(Ball& ball, int thread) {
  if (thread > 1) return;
  for (int trip = 0; trip < kLineTrips; ++trip)
    for (int side = 0; side < 2; ++side) {
      if (side != thread) continue;
      // Even: thread 0's to take; odd: thread 1's. Nothing else is published with it.
      while (int(ball.turn.load(std::memory_order_acquire) % 2) != thread) {
      }
      ball.turn.fetch_add(1, std::memory_order_release);
    }
}

class Bare {
 public:
  Bare(const contest::Options& options, int ranks, int thread, int threads, contest::Buffers& buffers, Ball& ball)
      : options_(options),
        ranks_(ranks),
        thread_(thread),
        threads_(threads),
        buffers_(buffers),
        ball_(ball),
        line_(options.start_line, thread, threads, nullptr) {}

  void run() {
    for (const contest::Options::Asked& asked : options_.cells) {
      const Cell cell = contest::make_cell(asked.operation, asked.bytes, 0, ranks_);
      begin_ = contest::now_ns();
      if (cell.bytes <= 8)
        cache_line(cell);
      else if (cell.bytes >= kLarge)
        large(cell);
    }
    line_.meet();
  }

 private:
  void cache_line(const Cell& cell) {
    const bool known = cell.operation == Operation::barrier || cell.operation == Operation::allreduce ||
                       cell.operation == Operation::round_trip;
    if (!known || ranks_ != 2 || threads_ < 2) return;
    const contest::Summary whole =
        time([this] { bounce(ball_, thread_); }, cell.operation == Operation::round_trip ? 2 * kLineTrips : kLineTrips);
    report(cell, whole, "cache line");
  }

  void large(const Cell& cell) {
    if (cell.operation == Operation::send) {
      const auto copy = [&] {
        if (thread_ == 0) std::memcpy(buffers_.out[0], buffers_.in[0], cell.count * sizeof(float));
      };
      report(cell, time(copy, 1), "memcpy");
      return;
    }
    const std::vector<contest::Task> tasks = contest::tasks_of(cell, buffers_);
    if (tasks.empty()) return;
    const auto with = [&](Stores stores) {
      return time([&] { contest::run_share(tasks, thread_, threads_, stores); }, 1);
    };
    if (cell.operation == Operation::allreduce_in_place) {
      // Sums of sums of ones grow to infinity, which costs no more to add.
      report(cell, with(Stores::plain), "plain stores");
      return;
    }
    const contest::Summary plain = with(Stores::plain);
    const contest::Summary nontemporal = with(Stores::nontemporal);
    if (thread_ == 0 && plain.median_us <= nontemporal.median_us)
      report(cell, plain, "plain stores");
    else
      report(cell, nontemporal, "non-temporal stores");
  }

  contest::Summary time(const std::function<void()>& work, int repeats) {
    const contest::Series warm_up{.seconds = options_.seconds / 5, .most_seconds = options_.most_seconds, .fewest = 1};
    const contest::Series measured{.seconds = options_.seconds, .most_seconds = options_.most_seconds};
    std::vector<StartLine::Sample> samples;
    for (const contest::Series& series : {warm_up, measured}) {
      samples.clear();
      const std::int64_t begin = contest::now_ns();
      const auto goes_on = [&] { return series.goes_on(samples.size(), double(contest::now_ns() - begin) * 1e-9); };
      while (line_.start(thread_ == 0 ? std::int64_t(goes_on()) : 0) != 0) {
        StartLine::Sample sample;
        sample.begin_ns = contest::now_ns();
        work();
        sample.end_ns = contest::now_ns();
        samples.push_back(sample);
      }
    }
    const auto by_thread = line_.collect(samples);
    return thread_ == 0 ? contest::summarize(by_thread, int(by_thread.size()), repeats) : contest::Summary{};
  }

  void report(const Cell& cell, const contest::Summary& summary, const char* how) const {
    if (thread_ == 0)
      contest::print_line(cell, summary, {.spent_s = double(contest::now_ns() - begin_) * 1e-9, .how = how});
  }

  const contest::Options& options_;
  int ranks_;
  int thread_;
  int threads_;
  contest::Buffers& buffers_;
  Ball& ball_;
  StartLine line_;
  std::int64_t begin_ = 0;  // of the cell
};

int run(int argc, char** argv) {
  const contest::Options options = contest::parse(argc, argv);
  const int ranks = std::stoi(contest::from_environment("CONTEST_RANKS"));
  const int threads = std::min(options.start_line.processors, ranks);
  contest::Buffers buffers(ranks, std::max<std::size_t>(4096, contest::largest(options)));
  Ball ball;
  std::vector<std::thread> team;
  for (int thread = 0; thread < threads; ++thread)
    team.emplace_back([&, thread] {
      try {
        bind_to_processor(thread);
        Bare(options, ranks, thread, threads, buffers, ball).run();
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
        std::_Exit(1);
      }
    });
  for (std::thread& thread : team) thread.join();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 2;
  }
}

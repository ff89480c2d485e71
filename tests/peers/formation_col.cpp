// How long the ranks of a job take to form their first group, what goes through their store meanwhile, and what the
// group costs each of them once collectives of two levels have run: a barrier's time, memory and descriptors. Started
// by colrun. Rank 0 prints a line of JSON. With --split: how long half of the ranks take to make a group, too. With
// --lose: how soon each rank knows that one has died.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <sys/resource.h>

#include <col/col.hpp>

#include "options.hpp"
#include "start_line.hpp"
#include "support/counting_store.hpp"

namespace {

// The memory of this process, where each page that several share counts for its part (smaps_rollup).
std::int64_t own_memory_kib() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  for (std::string line; std::getline(rollup, line);) {
    if (line.starts_with("Pss:")) return std::stoll(line.substr(4));
  }
  throw std::runtime_error("/proc/self/smaps_rollup has no line Pss");
}

std::int64_t own_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all)) - 1;  // without the one that lists them
}

// Of so many in a row, from the last rank's start to the last one's end.
constexpr int kBarriers = 20;

void let_it_open_many() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Each value of all ranks; elsewhere than on rank 0 nothing.
std::vector<std::int64_t> all_of(contest::StartLine& line, std::int64_t own) {
  std::vector<std::int64_t> all;
  for (const auto& one : line.collect({{0, own}})) all.push_back(one[0].end_ns);
  std::sort(all.begin(), all.end());
  return all;
}

// From the last rank's call to the last return, in milliseconds, on rank 0: half of the ranks, of every host, make a
// group, and so does the other half.
double split_time(contest::StartLine& line, const col::Group& world) {
  constexpr int kSplits = 5;
  std::vector<double> times;
  for (int i = 0; i < kSplits; ++i) {
    line.meet();
    contest::StartLine::Sample sample{.begin_ns = contest::now_ns()};
    col::Group half = col::Group(world).split(world.rank() % 2, world.rank());
    sample.end_ns = contest::now_ns();
    std::int64_t begin = 0, end = 0;
    for (const auto& one : line.collect({sample})) {
      begin = std::max(begin, one[0].begin_ns);
      end = std::max(end, one[0].end_ns);
    }
    times.push_back(double(end - begin) / 1e6);
    line.meet();
    half.destroy();
  }
  return median_of(std::move(times));
}

// The last rank is killed while the others wait for it. Each says after how many milliseconds it knew.
[[noreturn]] void lose_the_last(contest::StartLine& line, col::Group& world) {
  constexpr std::int64_t kAhead = 300'000'000;  // until all wait
  std::signal(SIGTERM, SIG_IGN);                // of colrun, which does not wait for slow ranks
  const std::int64_t death = line.meet(contest::now_ns() + kAhead);
  if (world.rank() == world.size() - 1) {
    while (contest::now_ns() < death) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ::raise(SIGKILL);
  }
  try {
    world.barrier();
  } catch (const col::Error& error) {
    std::printf("{\"operation\":\"loss\",\"ranks\":%d,\"bytes\":0,\"median_us\":%.1f,\"named\":%d,\"wrong\":0}\n",
                world.size(), double(contest::now_ns() - death) / 1000, error.rank());
    std::fflush(stdout);
  }
  std::_Exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    let_it_open_many();
    col::ContextSpec spec = col::ContextSpec::from_environment();
    const int rank = spec.rank;
    const int size = spec.world_size;
    const auto store = std::make_shared<col::test::CountingStore>(spec.store);
    spec.store = store;
    contest::StartLine line({.path = contest::from_environment("CONTEST_START_LINE"),
                             .processors = std::stoi(contest::from_environment("CONTEST_PROCESSORS")),
                             .sleeps = true},
                            rank, size, {});
    line.meet();  // all have started
    contest::StartLine::Sample sample{.begin_ns = contest::now_ns()};
    col::Context context(spec);
    col::Group world = context.init_group({.rank = rank, .world_size = size});
    sample.end_ns = contest::now_ns();
    const auto times = line.collect({sample});
    const auto bytes_of = all_of(line, std::int64_t(store->bytes())),
               rounds = all_of(line, std::int64_t(store->rounds()));
    // Only what the leaders of hosts need is connected, where there are several hosts.
    const char* const hosts = std::getenv("COL_NNODES");
    const std::string_view algorithm = hosts != nullptr && std::string_view(hosts) != "1" ? "two_level_leaders" : "";
    float sum = 1;
    world.allreduce(std::span<float>(&sum, 1), {.algorithm = algorithm});
    const bool right = sum == float(size);
    world.barrier({.algorithm = algorithm});
    line.meet();
    contest::StartLine::Sample barriers{.begin_ns = contest::now_ns()};
    for (int i = 0; i < kBarriers; ++i) world.barrier({.algorithm = algorithm});
    barriers.end_ns = contest::now_ns();
    line.meet();  // all are idle
    const auto costs = line.collect({barriers, {own_memory_kib(), own_descriptors()}});
    const std::string_view more = argc > 1 ? argv[1] : "";
    if (more == "--lose") lose_the_last(line, world);
    const double split_ms = more == "--split" ? split_time(line, world) : 0;
    if (rank == 0) {
      std::int64_t begin = times[0][0].begin_ns;
      std::int64_t end = times[0][0].end_ns;
      std::int64_t bytes = 0;
      std::int64_t barriers_begin = 0, barriers_end = 0, most_memory = 0, all_memory = 0, most_descriptors = 0;
      for (const auto& of_rank : costs) {
        barriers_begin = std::max(barriers_begin, of_rank[0].begin_ns);
        barriers_end = std::max(barriers_end, of_rank[0].end_ns);
        most_memory = std::max(most_memory, of_rank[1].begin_ns);
        all_memory += of_rank[1].begin_ns;
        most_descriptors = std::max(most_descriptors, of_rank[1].end_ns);
      }
      for (int i = 0; i < size; ++i) {
        // The last to begin and the last to end: what a rank waited for others to be scheduled is not theirs.
        begin = std::max(begin, times[std::size_t(i)][0].begin_ns);
        end = std::max(end, times[std::size_t(i)][0].end_ns);
        bytes += bytes_of[std::size_t(i)];
      }
      std::printf(
          "{\"operation\":\"formation\",\"ranks\":%d,\"bytes\":0,\"median_us\":%.1f,\"store_bytes\":%lld,"
          "\"backend\":\"%s\",\"wrong\":%d,\"barrier_us\":%.1f,\"memory_kib\":%.0f,\"most_memory_kib\":%lld,"
          "\"most_descriptors\":%lld,\"rounds\":%lld,\"most_rounds\":%lld,\"split_ms\":%.2f}\n",
          size, double(end - begin) / 1000, static_cast<long long>(bytes), std::string(world.backend()).c_str(),
          right ? 0 : 1, double(barriers_end - barriers_begin) / 1000 / kBarriers, double(all_memory) / size,
          static_cast<long long>(most_memory), static_cast<long long>(most_descriptors),
          static_cast<long long>(rounds[rounds.size() / 2]), static_cast<long long>(rounds.back()), split_ms);
    }
    line.meet();
    context.finalize();
    return right ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "formation: %s\n", error.what());
    return 1;
  }
}

// How long the ranks of a job take to form their first group, what goes through their store meanwhile, and what the
// group costs each of them once collectives of two levels have run: a barrier's time, memory and descriptors. Started
// by colrun. Rank 0 prints a line of JSON.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/resource.h>

#include <col/col.hpp>

#include "options.hpp"
#include "start_line.hpp"

namespace {

// Counts keys and values, asked for or answered; not what a wire adds to them.
class CountingStore final : public col::Store {
 public:
  explicit CountingStore(std::shared_ptr<col::Store> store) : store_(std::move(store)) {}

  void set(std::string_view key, std::string_view value) override {
    count(key.size() + value.size());
    store_->set(key, value);
  }
  std::optional<std::string> get(std::string_view key) override {
    auto value = store_->get(key);
    count(key.size() + (value ? value->size() : 0));
    return value;
  }
  std::string wait(std::string_view key, col::WaitContext& wait) override {
    std::string value = store_->wait(key, wait);
    count(key.size() + value.size());
    return value;
  }
  std::int64_t add(std::string_view key, std::int64_t delta) override {
    const std::int64_t sum = store_->add(key, delta);
    count(key.size() + std::to_string(sum).size());
    return sum;
  }
  std::optional<std::string> compare_set(std::string_view key, std::optional<std::string_view> expected,
                                         std::string_view desired) override {
    auto before = store_->compare_set(key, expected, desired);
    count(key.size() + desired.size() + (before ? before->size() : 0));
    return before;
  }
  bool erase(std::string_view key) override {
    count(key.size());
    return store_->erase(key);
  }
  std::size_t num_keys(std::string_view prefix) override { return store_->num_keys(prefix); }

  std::size_t bytes() const { return bytes_; }

 private:
  void count(std::size_t bytes) { bytes_ += bytes; }

  std::shared_ptr<col::Store> store_;
  std::atomic<std::size_t> bytes_{0};
};

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

}  // namespace

int main() {
  try {
    let_it_open_many();
    col::ContextSpec spec = col::ContextSpec::from_environment();
    const int rank = spec.rank;
    const int size = spec.world_size;
    const auto store = std::make_shared<CountingStore>(spec.store);
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
    const auto counts = line.collect({{0, std::int64_t(store->bytes())}});
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
        bytes += counts[std::size_t(i)][0].end_ns;
      }
      std::printf(
          "{\"operation\":\"formation\",\"ranks\":%d,\"bytes\":0,\"median_us\":%.1f,\"store_bytes\":%lld,"
          "\"backend\":\"%s\",\"wrong\":%d,\"barrier_us\":%.1f,\"memory_kib\":%.0f,\"most_memory_kib\":%lld,"
          "\"most_descriptors\":%lld}\n",
          size, double(end - begin) / 1000, static_cast<long long>(bytes), std::string(world.backend()).c_str(),
          right ? 0 : 1, double(barriers_end - barriers_begin) / 1000 / kBarriers, double(all_memory) / size,
          static_cast<long long>(most_memory), static_cast<long long>(most_descriptors));
    }
    line.meet();
    context.finalize();
    return right ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "formation: %s\n", error.what());
    return 1;
  }
}

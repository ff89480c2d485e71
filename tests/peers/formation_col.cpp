// How long the ranks of a job take to form their first group, and what goes through their store meanwhile. Started by
// colrun. Rank 0 prints a line of JSON.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
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
                             .processors = std::stoi(contest::from_environment("CONTEST_PROCESSORS"))},
                            rank, size, {});
    line.meet();  // all have started
    contest::StartLine::Sample sample{.begin_ns = contest::now_ns()};
    col::Context context(spec);
    col::Group world = context.init_group({.rank = rank, .world_size = size});
    sample.end_ns = contest::now_ns();
    const auto times = line.collect({sample});
    const auto counts = line.collect({{0, std::int64_t(store->bytes())}});
    float sum = 1;
    world.allreduce(std::span<float>(&sum, 1));
    const bool right = sum == float(size);
    if (rank == 0) {
      std::int64_t begin = times[0][0].begin_ns;
      std::int64_t end = times[0][0].end_ns;
      std::int64_t bytes = 0;
      for (int i = 0; i < size; ++i) {
        // The last to begin and the last to end: what a rank waited for others to be scheduled is not theirs.
        begin = std::max(begin, times[std::size_t(i)][0].begin_ns);
        end = std::max(end, times[std::size_t(i)][0].end_ns);
        bytes += counts[std::size_t(i)][0].end_ns;
      }
      std::printf(
          "{\"operation\":\"formation\",\"ranks\":%d,\"bytes\":0,\"median_us\":%.1f,\"store_bytes\":%lld,"
          "\"backend\":\"%s\",\"wrong\":%d}\n",
          size, double(end - begin) / 1000, static_cast<long long>(bytes), std::string(world.backend()).c_str(),
          right ? 0 : 1);
    }
    line.meet();
    context.finalize();
    return right ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "formation: %s\n", error.what());
    return 1;
  }
}

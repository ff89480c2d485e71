#include "start_line.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string>

namespace contest {
namespace {

// Longer than a cache line takes to reach the others, and no longer than needed.
constexpr std::int64_t kLeadNs = 2000;
constexpr std::int64_t kIdleNs = 1'000'000;
constexpr std::int64_t kLimitNs = 180'000'000'000;
constexpr useconds_t kSleepUs = 1000;
constexpr int kSpins = 2000;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct StartLine::Shared {
  alignas(128) std::atomic<std::uint32_t> arrived;
  // Times that all have arrived. Its release store by the last one publishes everything written before it, `moment`
  // and `value` included; every rank's acquire load pairs with it.
  alignas(128) std::atomic<std::uint32_t> passed;
  std::atomic<std::int64_t> moment;
  // Two, as rank 0 may write the next while a slow rank has not read this one.
  std::atomic<std::int64_t> value[2];
  alignas(128) Sample samples[kMaxRanks][kMaxSamples];
};

std::size_t StartLine::bytes() {
  return sizeof(Shared);
}

StartLine::StartLine(const Place& place, int rank, int size, std::function<void()> idle)
    : rank_(rank),
      size_(size),
      one_processor_each_(size <= place.processors),
      sleeps_(place.sleeps),
      idle_(std::move(idle)) {
  const std::string& path = place.path;
  if (size > kMaxRanks) throw std::runtime_error("a contest has at most " + std::to_string(kMaxRanks) + " ranks");
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) throw std::runtime_error("cannot open " + path + ": " + std::strerror(errno));
  if (ftruncate(fd, off_t(bytes())) != 0) {
    close(fd);
    throw std::runtime_error("cannot size " + path + ": " + std::strerror(errno));
  }
  void* mapped = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (mapped == MAP_FAILED) throw std::runtime_error("cannot map " + path + ": " + std::strerror(errno));
  shared_ = static_cast<Shared*>(mapped);
}

StartLine::~StartLine() {
  munmap(shared_, bytes());
}

std::int64_t StartLine::meet(std::int64_t value_of_rank_0) {
  return pass(value_of_rank_0, 0);
}

std::int64_t StartLine::start(std::int64_t value_of_rank_0) {
  return pass(value_of_rank_0, one_processor_each_ ? kLeadNs : 0);
}

std::int64_t StartLine::pass(std::int64_t value, std::int64_t lead_ns) {
  Shared& shared = *shared_;
  const std::uint32_t mine = ++passed_;
  if (rank_ == 0) shared.value[mine % 2].store(value, std::memory_order_relaxed);
  // Release and acquire: the last one to arrive sees what the others wrote before they did.
  if (shared.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == std::uint32_t(size_)) {
    shared.arrived.store(0, std::memory_order_relaxed);
    shared.moment.store(lead_ns == 0 ? 0 : now_ns() + lead_ns, std::memory_order_relaxed);
    shared.passed.store(mine, std::memory_order_release);
  }
  std::int64_t since = 0;
  std::int64_t last_idle = 0;
  for (int spins = 0; shared.passed.load(std::memory_order_acquire) != mine; ++spins) {
    if (one_processor_each_ && spins < kSpins) {
      relax();
      continue;
    }
    sleeps_ ? static_cast<void>(usleep(kSleepUs)) : static_cast<void>(sched_yield());
    const std::int64_t now = now_ns();
    if (since == 0) since = last_idle = now;
    if (now - last_idle > kIdleNs) {
      last_idle = now;
      if (idle_) idle_();
    }
    if (now - since > kLimitNs)
      throw std::runtime_error("the other ranks did not come to the start line in three minutes");
  }
  const std::int64_t result = shared.value[mine % 2].load(std::memory_order_relaxed);
  if (lead_ns != 0) {
    const std::int64_t moment = shared.moment.load(std::memory_order_relaxed);
    while (now_ns() < moment) relax();
  }
  return result;
}

std::vector<std::vector<StartLine::Sample>> StartLine::collect(const std::vector<Sample>& own) {
  std::copy(own.begin(), own.end(), shared_->samples[rank_]);
  meet();
  std::vector<std::vector<Sample>> all;
  if (rank_ == 0)
    for (int rank = 0; rank < size_; ++rank)
      all.emplace_back(shared_->samples[rank], shared_->samples[rank] + own.size());
  meet();
  return all;
}

}  // namespace contest

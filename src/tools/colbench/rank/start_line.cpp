#include "colbench/rank/start_line.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <ctime>

#include <fmt/format.h>

#include "common/unique_fd.hpp"

namespace col::colbench {
namespace {

constexpr int kMostRanks = 4096;
constexpr std::uint64_t kMagic = 0x636f'6c62'656e'6368;
constexpr std::size_t kLine = 64;

void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

struct alignas(kLine) Word {
  std::atomic<std::uint64_t> value{0};
};

}  // namespace

struct StartLine::Page {
  std::uint64_t magic = kMagic;
  Word turn;                              // of `start`; written by rank 0 after it
  std::atomic<std::int64_t> start_ns{0};  // in the line after turn's: both change together
  std::atomic<bool> failed{false};        // a rank has, and comes no more
  Word there, back;                       // hand_over()
  std::array<Word, kMostRanks> arrived;   // turn that the rank has come to
};

std::int64_t now_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

StartLine::StartLine(Group control, std::shared_ptr<ControlPage> page, bool barrier, int usable_cpus)
    : control_(std::move(control)),
      job_(std::move(page)),
      crowded_(control_.size() > usable_cpus),
      rank_(control_.rank()),
      size_(control_.size()) {
  if (barrier || size_ > kMostRanks) return;
  map(control_);
}

StartLine::~StartLine() {
  unmap();
}

void StartLine::unmap() noexcept {
  if (page_ != nullptr) ::munmap(page_, sizeof(Page));
  page_ = nullptr;
}

// Rank 0 makes a file that is gone as soon as everybody has looked.
void StartLine::map(Group& control) {
  std::string path;
  tools::UniqueFd file;
  if (rank_ == 0) {
    path = fmt::format("/dev/shm/colbench.{}.{}", ::getpid(), now_ns());
    file.reset(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    // All of it now: a full file system is an error here, and a signal later.
    if (!file || ::posix_fallocate(file.get(), 0, sizeof(Page)) != 0) {
      if (file) ::unlink(path.c_str());
      path.clear();
    }
  }
  const auto map_file = [this](int fd) {
    void* memory = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory != MAP_FAILED) page_ = static_cast<Page*>(memory);
  };
  if (!path.empty()) {
    map_file(file.get());
    if (page_ != nullptr) new (page_) Page;
  }
  control.broadcast_object(path);
  if (rank_ != 0 && !path.empty()) {
    file.reset(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (file) map_file(file.get());
    if (page_ != nullptr && page_->magic != kMagic) unmap();
  }
  const auto mapped = control.allgather_object<char>(page_ != nullptr ? 1 : 0);
  if (rank_ == 0 && !path.empty()) ::unlink(path.c_str());
  if (std::count(mapped.begin(), mapped.end(), 1) != size_) unmap();
}

// Spins for a short time and then lets others run; looks at the job from time to time.
template <class Ready>
void StartLine::wait_until(Duration timeout, Ready ready) {
  constexpr int kSpins = 2000, kYields = 1000;
  for (int i = 0; !crowded_ && i < kSpins; ++i) {
    if (ready()) return;
    relax();
  }
  WaitContext wait(Deadline::after(timeout), job_.get());
  wait.describe([this] { return fmt::format("the start of operation {}", turn_); });
  for (;;) {
    for (int i = 0; i < kYields; ++i) {
      if (ready()) return;
      ::sched_yield();
    }
    wait.check();
    if (page_->failed.load(std::memory_order_relaxed))
      throw Error(ErrorCode::aborted, "another rank has failed and does not come to the start");
  }
}

void StartLine::fail() noexcept {
  if (page_ != nullptr) page_->failed.store(true, std::memory_order_relaxed);
}

std::int64_t StartLine::wait(Duration timeout) {
  if (page_ == nullptr) {
    control_.barrier({.timeout = timeout});
    return now_ns();
  }
  ++turn_;
  // Long enough for everybody to have seen it, also those that first have to get a core.
  const std::int64_t lead_ns = crowded_ ? 20'000 : 3'000;
  page_->arrived[static_cast<std::size_t>(rank_)].value.store(turn_, std::memory_order_release);
  if (rank_ == 0) {
    for (int rank = 0; rank < size_; ++rank) {
      // Pairs with the store above, of that rank: what it did before has happened.
      const Word& word = page_->arrived[static_cast<std::size_t>(rank)];
      wait_until(timeout, [&] { return word.value.load(std::memory_order_acquire) >= turn_; });
    }
    page_->start_ns.store(now_ns() + lead_ns, std::memory_order_relaxed);
    page_->turn.value.store(turn_, std::memory_order_release);  // pairs with the load below: start_ns is this turn's
  }
  wait_until(timeout, [&] { return page_->turn.value.load(std::memory_order_acquire) >= turn_; });
  const std::int64_t start_ns = page_->start_ns.load(std::memory_order_relaxed);
  if (crowded_)
    while (now_ns() < start_ns) ::sched_yield();
  else
    while (now_ns() < start_ns) relax();
  return start_ns;
}

double StartLine::hand_over(Duration timeout) {
  constexpr int kRounds = 10, kTries = 400;  // so short that some are not disturbed
  if (page_ == nullptr || size_ < 2) return 0;
  double best = 0;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const std::int64_t begin = now_ns();
    for (int round = 0; round < kRounds; ++round) {
      ++bounced_;
      if (rank_ == 0) {
        page_->there.value.store(bounced_, std::memory_order_release);
        wait_until(timeout, [&] { return page_->back.value.load(std::memory_order_acquire) >= bounced_; });
      } else if (rank_ == size_ - 1) {
        wait_until(timeout, [&] { return page_->there.value.load(std::memory_order_acquire) >= bounced_; });
        page_->back.value.store(bounced_, std::memory_order_release);
      }
    }
    const double seconds = static_cast<double>(now_ns() - begin) * 1e-9 / (2 * kRounds);
    if (best == 0 || seconds < best) best = seconds;
  }
  return best;
}

}  // namespace col::colbench

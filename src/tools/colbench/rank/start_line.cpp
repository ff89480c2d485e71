#include "colbench/rank/start_line.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>

#include <fmt/format.h>

#include "colbench/machine/latency.hpp"
#include "core/clock/clock.hpp"

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
  std::uint64_t nonce = 0;                // of this run's page
  Word turn;                              // of `start`; written by rank 0 after it
  std::atomic<std::int64_t> start_ns{0};  // in the line after turn's: both change together
  std::atomic<bool> failed{false};        // a rank has, and comes no more
  Word there, back;                       // hand_over()
  std::array<Word, kMostRanks> arrived;   // turn that the rank has come to
};

StartLine::StartLine(Group control, std::shared_ptr<ControlPage> page, bool barrier, std::span<const Whereabouts> ranks)
    : control_(std::move(control)),
      job_(std::move(page)),
      crowded_(control_.size() > cpus_of(ranks)),
      rank_(control_.rank()),
      size_(control_.size()) {
  const auto is_elsewhere = [&](const Whereabouts& rank) { return !share_host(rank, ranks.front()); };
  if (barrier || size_ > kMostRanks || std::any_of(ranks.begin(), ranks.end(), is_elsewhere)) return;
  const auto is_hidden = [&](const Whereabouts& rank) { return !share_processes(rank, ranks.front()); };
  if (std::any_of(ranks.begin(), ranks.end(), is_hidden)) {
    why_barrier_ = "the ranks are in several process namespaces";
    return;
  }
  map();
}

StartLine::~StartLine() {
  unmap();
}

void StartLine::unmap() noexcept {
  if (page_ != nullptr) ::munmap(page_, sizeof(Page));
  page_ = nullptr;
}

// Where rank 0's page is, and how to distinguish it from another one.
struct StartLine::Offer {
  std::int64_t pid = 0;
  int file = -1;  // none
  std::uint64_t nonce = 0;
};

// The page has no name: it is gone with the last process that has it, however the ranks end. The others open it through
// rank 0's file descriptors.
void StartLine::map() {
  Offer offer;
  tools::UniqueFd file;
  std::string trouble;
  if (rank_ == 0) trouble = make_page(offer, file);
  control_.broadcast_object(offer);
  if (rank_ != 0 && offer.file >= 0) trouble = find_page(offer);
  for (const std::string& other : control_.allgather_object(trouble))
    if (why_barrier_.empty()) why_barrier_ = other;
  if (!why_barrier_.empty()) unmap();
}

std::string StartLine::make_page(Offer& offer, tools::UniqueFd& file) {
  const auto failed = [](int code) {
    return fmt::format("rank 0 cannot share {} bytes of memory: {}", sizeof(Page), std::strerror(code));
  };
  std::uint64_t nonce = 0;
  if (::getrandom(&nonce, sizeof nonce, 0) != sizeof nonce) return failed(errno);
  file.reset(::memfd_create("colbench-start", MFD_CLOEXEC));
  if (!file) return failed(errno);
  // All of it now: too little memory is an error here, and a signal later.
  if (const int code = ::posix_fallocate(file.get(), 0, sizeof(Page)); code != 0) return failed(code);
  if (!map_file(file.get())) return failed(errno);
  new (page_) Page;
  page_->nonce = nonce;
  offer = {.pid = ::getpid(), .file = file.get(), .nonce = nonce};
  return {};
}

std::string StartLine::find_page(const Offer& offer) {
  const std::string path = fmt::format("/proc/{}/fd/{}", offer.pid, offer.file);
  const auto failed = [&](const char* why) { return fmt::format("rank {} cannot map {}: {}", rank_, path, why); };
  const tools::UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  struct stat facts {};
  if (!file || ::fstat(file.get(), &facts) != 0) return failed(std::strerror(errno));
  const bool fits = S_ISREG(facts.st_mode) && facts.st_size == static_cast<off_t>(sizeof(Page));
  if (fits && !map_file(file.get())) return failed(std::strerror(errno));
  if (fits && page_->magic == kMagic && page_->nonce == offer.nonce) return {};
  return failed("it is another file");
}

bool StartLine::map_file(int file) noexcept {
  void* memory = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return false;
  page_ = static_cast<Page*>(memory);
  return true;
}

// Spins for a short time and then lets others run; looks at the job from time to time.
template <class Ready>
void StartLine::wait_until(Duration timeout, Ready ready) {
  constexpr int kPolls = 2000, kYields = 1000;
  for (int i = 0; !crowded_ && i < kPolls; ++i) {
    if (ready()) return;
    relax();
  }
  WaitContext wait(Deadline::after(timeout), job_.get());
  wait.describe([this] { return fmt::format("the start of operation {}", turn_); });
  for (;;) {
    for (int i = 0; i < kYields; ++i) {
      if (ready()) return;
      core::yield();
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
  // Long enough for all ranks to see it, also for those that must first get a core.
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
    while (now_ns() < start_ns) core::yield();
  else
    while (now_ns() < start_ns) relax();
  return start_ns;
}

double StartLine::hand_over(Duration timeout) {
  constexpr int kRounds = 10, kAttempts = 400;  // so short that some are not disturbed
  if (page_ == nullptr || size_ < 2) return 0;
  double best = 0;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
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

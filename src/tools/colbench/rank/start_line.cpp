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
#include "common/gpu.hpp"
#include "common/unique_fd.hpp"
#include "core/clock/clock.hpp"
#include "launch/place/cpu_quota.hpp"

namespace col::colbench {
namespace {

using Text = std::array<char, 64>;

Text read_text(const char* path) {
  Text text = {};
  const tools::UniqueFd file(::open(path, O_RDONLY | O_CLOEXEC));
  if (file && ::read(file.get(), text.data(), text.size() - 1) < 0) return {};
  return text;
}

Text read_namespace(const char* path) {
  Text text = {};
  if (::readlink(path, text.data(), text.size() - 1) < 0) return {};
  return text;
}

bool share_network(const Whereabouts& a, const Whereabouts& b) {
  return share_host(a, b) && a.network_namespace == b.network_namespace;
}

// The first of `ranks` that `same` says to be with this one.
template <class Same>
std::size_t first_with(std::span<const Whereabouts> ranks, const Whereabouts& one, Same same) {
  const auto found =
      std::find_if(ranks.begin(), ranks.end(), [&](const Whereabouts& other) { return same(other, one); });
  return static_cast<std::size_t>(found - ranks.begin());
}

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

Whereabouts own_whereabouts(int gpu) {
  Whereabouts own;
  if (gpu >= 0) tools::facts_of_gpu(gpu).text().copy(own.gpu.data(), own.gpu.size() - 1);
  own.boot = read_text("/proc/sys/kernel/random/boot_id");
  own.network_namespace = read_namespace("/proc/self/ns/net");
  own.pid_namespace = read_namespace("/proc/self/ns/pid");
  CPU_ZERO(&own.cpus);
  if (::sched_getaffinity(0, sizeof own.cpus, &own.cpus) != 0) CPU_ZERO(&own.cpus);
  own.cpu_count = launch::usable_cpus();
  return own;
}

std::string gpus_of(std::span<const Whereabouts> ranks) {
  std::vector<tools::RankOnGpu> all;
  for (const Whereabouts& rank : ranks) all.push_back({rank.boot.data(), rank.gpu.data()});
  return ranks.empty() || ranks.front().gpu[0] == '\0' ? "" : tools::gpus_by_rank(all);
}

bool share_host(const Whereabouts& a, const Whereabouts& b) {
  return a.boot == b.boot;
}

bool share_processes(const Whereabouts& a, const Whereabouts& b) {
  return share_host(a, b) && a.pid_namespace == b.pid_namespace;
}

std::vector<int> nodes_of(std::span<const Whereabouts> ranks) {
  std::vector<int> nodes;
  int known = 0;
  for (const Whereabouts& rank : ranks) {
    const std::size_t first = first_with(ranks, rank, share_network);
    nodes.push_back(first < nodes.size() ? nodes[first] : known++);
  }
  return nodes;
}

cpu_set_t cores_beside(std::span<const Whereabouts> ranks, const Whereabouts& one) {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (const Whereabouts& rank : ranks) {
    if (share_host(rank, one)) CPU_OR(&all, &all, &rank.cpus);
  }
  return all;
}

int cpus_of(std::span<const Whereabouts> ranks) {
  int cpus = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (first_with(ranks, ranks[i], share_host) != i) continue;
    const cpu_set_t all = cores_beside(ranks, ranks[i]);
    int uncounted = 0;
    for (const Whereabouts& rank : ranks) {
      if (share_host(rank, ranks[i]) && CPU_COUNT(&rank.cpus) == 0) uncounted = std::max(uncounted, rank.cpu_count);
    }
    cpus += std::max(CPU_COUNT(&all), uncounted);
  }
  return std::max(1, cpus);
}

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

#include "backend/shm/calibration/measure.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <functional>
#include <future>
#include <system_error>
#include <thread>

#include "backend/shm/calibration/processors_nearby.hpp"
#include "backend/shm/native/waiter.hpp"
#include "backend/shm/segment/layout.hpp"
#include "core/kernels/fold.hpp"
#include "core/kernels/to_others.hpp"

namespace col::shm_backend {
namespace {

using Clock = std::chrono::steady_clock;

// Between them lies what ranks move most often. Both fit into the caches of any processor of today.
constexpr std::size_t kLittle = std::size_t{16} << 10, kMuch = std::size_t{128} << 10;
constexpr std::size_t kPart = std::size_t{8} << 10;  // of a transfer through slots, so that both copy at a time
constexpr std::size_t kBuffer = kSlotSizes.back(), kSmallPage = 4096;
static_assert(2 * kMuch <= kBuffer);
constexpr int kTries = 4, kLines = 16, kLooksBetweenClocks = 64;

std::uint64_t since(Clock::time_point begin) {
  const auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin);
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, time.count())) * 1000;
}

// What both sides have: private memory of this process, taken at the beginning.
class Memory {
 public:
  Memory() noexcept {
    // One large page is there in a tenth of the time of many small ones; where there is none, small ones do.
    if (all_ == MAP_FAILED) return;
    ::madvise(slots(), kAllSlots, MADV_HUGEPAGE);
    touch(slots(), kAllSlots);
    for (const int side : {0, 1}) touch(buffer(side), kBuffer);
  }
  ~Memory() {
    if (all_ != MAP_FAILED) ::munmap(all_, kAll);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  bool is_there() const noexcept { return all_ != MAP_FAILED; }
  std::byte* slot(int side, std::size_t index, std::size_t bytes, std::size_t parts = kSlots) const noexcept {
    return slots() + static_cast<std::size_t>(side) * (kAllSlots / 2) + index % parts * bytes;
  }
  // How many parts the slots of one side have together.
  static constexpr std::size_t parts_of(std::size_t bytes) noexcept { return kAllSlots / 2 / bytes; }
  // Each has a page table of its own: the kernel locks that for every page that it copies from, and the two sides would
  // wait for each other as no two processes do (four times as long on an Intel Xeon).
  std::byte* buffer(int side) const noexcept { return slots() + static_cast<std::size_t>(1 + side) * kAllSlots; }

 private:
  static constexpr std::size_t kAllSlots = 2 * kSlots * kSlotSizes.back(), kAll = 3 * kAllSlots + kBuffer;
  static_assert(kAllSlots % (std::size_t{2} << 20) == 0, "what a page table is for, and a large page");

  static void touch(std::byte* begin, std::size_t bytes) noexcept {
    for (std::size_t at = 0; at < bytes; at += kSmallPage) begin[at] = std::byte{1};
  }

  std::byte* begin() const noexcept { return static_cast<std::byte*>(all_); }
  // At the border of a large page.
  std::byte* slots() const noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(all_);
    return begin() + ((at + kAllSlots - 1) / kAllSlots * kAllSlots - at);
  }

  void* const all_ = ::mmap(nullptr, kAll, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
};

// Thrown where the time is over, on either side.
struct Late {};

// The calling thread (side 0) and its helper (side 1). Both run the same function; each counts what it tells. Neither
// waits for the other longer than `patience`, nor past `end`.
class Pair {
 public:
  Pair(Clock::time_point end, Duration patience) : end_(end), patience_(patience), own_processor_(::sched_getcpu()) {
    // The program's signals are for its own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      helper_ = std::thread([this] { help(); });
    } catch (const std::exception&) {  // no thread to be had
      ended_.store(true, std::memory_order_relaxed);
      settled_.set_value();
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    // It begins on the processors of this thread, and colrun binds ranks to one. If this thread polled there, the
    // helper could not even move away before the kernel takes the processor from it, some milliseconds later.
    const Clock::time_point last = std::min(end_, Clock::now() + patience_);
    if (settled_.get_future().wait_until(last) == std::future_status::timeout)
      ended_.store(true, std::memory_order_relaxed);
  }
  ~Pair() { end(); }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  // Runs it on both sides, where each must hear whatever the other tells. The time until both have come to its end.
  // Throws Late.
  using Task = std::function<void(int side)>;
  std::uint64_t run(const Task& task) {
    task_ = &task;
    const Clock::time_point begin = Clock::now();
    try {
      tell(0);
      task(0);
      hear(0);
    } catch (const Late&) {
      end();  // the helper may be in the task, or about to begin it
      throw;
    }
    return since(begin);
  }

  // The other side sees what this one did before, once it has heard this.
  void tell(int side) noexcept {
    Side& own = sides_[side];
    own.told.store(++own.count, std::memory_order_release);  // pairs with hear()
  }
  // Waits for the next thing that the other side tells. Throws Late.
  void hear(int side) {
    const auto& told = sides_[1 - side].told;
    const std::uint64_t next = ++sides_[side].heard;
    Clock::time_point last = end_;
    for (int look = 1; told.load(std::memory_order_acquire) < next; ++look) {
      if (look == kLooksBetweenClocks) last = std::min(end_, Clock::now() + patience_);
      if (look % kLooksBetweenClocks == 0 && (ended_.load(std::memory_order_relaxed) || Clock::now() > last))
        throw Late();
      pause_briefly();
    }
  }

 private:
  struct Side {
    alignas(kLine) std::atomic<std::uint64_t> told{0};
    alignas(kLine) std::uint64_t count = 0;  // what it has told, and what it has heard: its own
    std::uint64_t heard = 0;
  };

  void end() noexcept {
    ended_.store(true, std::memory_order_relaxed);
    if (helper_.joinable()) helper_.join();
  }

  void help() noexcept {
    bool has_moved = false;
    try {
      const cpu_set_t beside = processors_beside(own_processor_);
      has_moved = CPU_COUNT(&beside) > 0 && ::sched_setaffinity(0, sizeof beside, &beside) == 0;
    } catch (...) {  // no memory: no help
    }
    if (!has_moved) ended_.store(true, std::memory_order_relaxed);
    settled_.set_value();
    try {
      while (has_moved) {
        hear(1);
        (*task_)(1);
        tell(1);
      }
    } catch (...) {  // the end
    }
    ended_.store(true, std::memory_order_relaxed);
  }

  const Clock::time_point end_;
  const Duration patience_;
  const int own_processor_;
  Side sides_[2];
  std::atomic<bool> ended_{false};
  std::promise<void> settled_;  // the helper is on a processor of its own, or has found none
  const Task* task_ = nullptr;
  std::thread helper_;
};

std::uint64_t best_of(Pair& pair, int tries, const Pair::Task& task) {
  std::uint64_t best = ~std::uint64_t{0};
  for (int i = 0; i < tries; ++i) best = std::min(best, pair.run(task));
  return best;
}

std::uint64_t line_of(Pair& pair) {
  const auto lines = [&](int side) {
    for (int i = 0; i < kLines; ++i) {
      if (side == 0) pair.tell(0);
      pair.hear(side);
      if (side == 1) pair.tell(1);
    }
  };
  return best_of(pair, kTries, lines) / (2 * kLines);
}

void take(std::byte* to, const std::byte* from, std::size_t bytes) {
  core::copy(to, from, bytes, core::Stores::cached);
}

// A call that takes `little` and `much` time for so many bytes, as a start and a cost for each KiB. Throws Late if more
// did not take longer: then something else held up every try, and nothing is known.
void fit(std::uint64_t little, std::uint64_t much, std::uint64_t& start, std::uint64_t& kib) {
  kib = (std::max(much, little) - little) / ((kMuch - kLittle) >> 10);
  if (kib == 0) throw Late();
  start = little - std::min(little, kib * (kLittle >> 10));
}

class Measuring {
 public:
  Measuring(Pair& pair, const Memory& memory) : pair_(pair), memory_(memory) {}

  Costs run() {
    Costs costs;
    costs.line = line_of(pair_);
    costs.step_kib = steps_kib();
    fit(through_slots(kLittle, kAgain), through_slots(kMuch, kAgain), costs.slot_start, costs.slot_kib);
    const std::uint64_t much = std::min(through_slots(kMuch, kOnward), through_slots(kMuch, kPast));
    costs.best_kib = std::min(costs.slot_kib, much / (kMuch >> 10));
    if (reads_by_kernel(1, sizeof(std::uint64_t))) {
      fit(by_kernel(kLittle, false), by_kernel(kMuch, false), costs.kernel_start, costs.kernel_kib);
      const std::uint64_t both = by_kernel(kMuch, true);
      costs.exchange_kib = (both - std::min(both, costs.kernel_start)) / (kMuch >> 10);
    }
    costs.yield = best_alone([] { ::sched_yield(); });
    std::atomic<std::uint64_t> flag{0};
    costs.look = best_alone([&] {
      static_cast<void>(flag.load(std::memory_order_acquire));
      pause_briefly();
    });
    return costs;
  }

 private:
  std::byte* slot(int side, std::size_t index, std::size_t bytes, std::size_t parts = kSlots) const {
    return memory_.slot(side, index, bytes, parts);
  }
  std::byte* buffer(int side) const { return memory_.buffer(side); }

  // What a rank sends, it has just computed.
  void compute(std::size_t bytes) { std::memset(buffer(0), ++computed_, bytes); }

  // The ways of StoreChoice: through so many parts of the slots in turn. Requires: steps_kib() has been through all.
  struct Way {
    std::size_t parts;
    core::Stores stores;
  };
  static constexpr Way kAgain{kSlots, core::Stores::cached}, kOnward{Memory::parts_of(kPart), core::Stores::cached},
      kPast{kSlots, core::Stores::streaming};
  std::uint64_t through_slots(std::size_t bytes, Way way) {
    std::uint64_t best = ~std::uint64_t{0};
    const std::size_t parts = bytes / kPart;
    for (std::size_t first = 0; first < kTries * parts; first += parts) {
      compute(bytes);
      best = std::min(best, pair_.run([&](int side) {
        for (std::size_t part = 0; part < parts; ++part) {
          if (side == 1 || part >= kSlots) pair_.hear(side);  // for side 0: that a slot is free again
          if (side == 0)
            core::copy_to_others(slot(0, first + part, kPart, way.parts), buffer(0) + part * kPart, kPart, way.stores);
          else
            take(buffer(1) + part * kPart, slot(0, first + part, kPart, way.parts), kPart);
          pair_.tell(side);
        }
        for (std::size_t left = std::min(parts, kSlots); side == 0 && left > 0; --left) pair_.hear(0);
      }));
    }
    return best;
  }

  // Into the second half of that side's buffer. Once one has read it and nobody has written it again, it is in the
  // caches of both: so these are the least times. Ranks find out whether they hold for their calls (KernelTrials).
  bool reads_by_kernel(int side, std::size_t bytes) const {
    const iovec to{buffer(side) + kMuch, bytes}, from{buffer(1 - side), bytes};
    return ::process_vm_readv(::getpid(), &to, 1, &from, 1, 0) == static_cast<ssize_t>(bytes);
  }
  std::uint64_t by_kernel(std::size_t bytes, bool both) {
    std::uint64_t best = ~std::uint64_t{0};
    for (int i = 0; i < kTries; ++i) {
      best = std::min(best, pair_.run([&](int side) {
        if (both || side == 1) reads_by_kernel(side, bytes);
      }));
    }
    return best;
  }

  // Once around all slots, both sides at a time. In turns, so that what disturbs one size disturbs all. The last
  // time past the caches, which ranks do where it is much faster.
  std::array<std::uint64_t, kSlotSizes.size()> steps_kib() {
    std::array<std::uint64_t, kSlotSizes.size()> best;
    best.fill(~std::uint64_t{0});
    for (int i = 0; i < kTries; ++i) {
      const bool is_past = i == kTries - 1;
      const core::Stores stores = is_past ? core::Stores::streaming : core::Stores::cached;
      for (std::size_t which = 0; which < kSlotSizes.size(); ++which) {
        const std::size_t bytes = kSlotSizes[which];
        const std::uint64_t time = pair_.run([&](int side) {
          for (std::size_t step = 0; step < kSlots; ++step) {
            core::copy_to_others(slot(side, step, bytes), buffer(side), bytes, stores);
            pair_.tell(side);
            pair_.hear(side);
            take(buffer(side), slot(1 - side, step, bytes), bytes);
          }
        });
        const std::uint64_t kib = time / (kSlots * bytes >> 10);
        if (!is_past || 2 * kib < best[which]) best[which] = std::min(best[which], kib);
      }
    }
    return best;
  }

  template <class What>
  static std::uint64_t best_alone(const What& what) {
    constexpr int kTimes = 8;
    std::uint64_t best = ~std::uint64_t{0};
    for (int i = 0; i < 2 * kTries; ++i) {
      const Clock::time_point begin = Clock::now();
      for (int k = 0; k < kTimes; ++k) what();
      best = std::min(best, since(begin));
    }
    return best / kTimes;
  }

  Pair& pair_;
  const Memory& memory_;
  int computed_ = 0;
};

}  // namespace

std::optional<Costs> measure_costs(Duration most, Duration patience) {
  const Clock::time_point end = Clock::now() + most;
  const Memory memory;
  if (!memory.is_there()) return std::nullopt;
  Pair pair(end, patience);
  try {
    return Measuring(pair, memory).run();
  } catch (const Late&) {
    return std::nullopt;
  }
}

std::optional<std::uint64_t> measure_line(Duration most) {
  Pair pair(Clock::now() + most, most);
  try {
    return line_of(pair);
  } catch (const Late&) {
    return std::nullopt;
  }
}

}  // namespace col::shm_backend

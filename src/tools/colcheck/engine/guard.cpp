#include "colcheck/engine/guard.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <new>
#include <system_error>

namespace col::colcheck {
namespace {

// What the handler reads. A slot is free when its first page is null; a handler that runs while a slot is filled or
// emptied belongs to a fault elsewhere, and sees either state.
struct Slot {
  std::atomic<std::byte*> first{nullptr};  // the page before the memory
  std::atomic<std::byte*> last{nullptr};   // the page after it
  std::atomic<bool> touched_first{false}, touched_last{false};
};

std::array<Slot, Guarded::kMostGuarded> slots;
std::atomic<std::size_t> used{0};  // slots from here on have never been used
std::mutex filling;                // of slots
struct sigaction previous;

const std::size_t kPage = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

bool lies_in(const std::byte* address, const std::byte* page) {
  return page != nullptr && address >= page && address < page + kPage;
}

// Async-signal-safe: atomics and mprotect, a plain system call.
void on_fault(int signal, siginfo_t* info, void* context) {
  const auto* address = static_cast<const std::byte*>(info->si_addr);
  for (std::size_t i = 0; i < used.load(std::memory_order_acquire); ++i) {
    Slot& slot = slots[i];
    std::byte* const first = slot.first.load(std::memory_order_acquire);
    std::byte* const last = slot.last.load(std::memory_order_acquire);
    const bool in_first = lies_in(address, first);
    if (!in_first && !lies_in(address, last)) continue;
    (in_first ? slot.touched_first : slot.touched_last).store(true, std::memory_order_release);
    if (::mprotect(in_first ? first : last, kPage, PROT_READ | PROT_WRITE) == 0) return;
  }
  if ((previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction != nullptr)
    return previous.sa_sigaction(signal, info, context);
  if ((previous.sa_flags & SA_SIGINFO) == 0 && previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN)
    return previous.sa_handler(signal);
  ::signal(signal, SIG_DFL);  // the instruction faults again, and ends the process
}

// Each time, as others may have installed theirs meanwhile: a test framework does for every test.
void install_handler() {
  const std::lock_guard lock(filling);
  struct sigaction current {};
  if (::sigaction(SIGSEGV, nullptr, &current) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot ask how SIGSEGV is handled");
  if ((current.sa_flags & SA_SIGINFO) != 0 && current.sa_sigaction == &on_fault) return;
  previous = current;
  struct sigaction action {};
  action.sa_sigaction = &on_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  ::sigemptyset(&action.sa_mask);
  if (::sigaction(SIGSEGV, &action, nullptr) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot handle SIGSEGV");
}

}  // namespace

Guarded::Guarded(std::size_t size) {
  install_handler();
  const std::size_t inner = (size + kPage - 1) / kPage * kPage;
  void* memory = ::mmap(nullptr, inner + 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "cannot map guarded memory");
  auto* const first = static_cast<std::byte*>(memory);
  std::byte* const last = first + kPage + inner;
  if (::mprotect(first, kPage, PROT_NONE) != 0 || ::mprotect(last, kPage, PROT_NONE) != 0) {
    const int error = errno;
    ::munmap(memory, inner + 2 * kPage);
    throw std::system_error(error, std::generic_category(), "cannot protect a page");
  }
  const std::lock_guard lock(filling);
  slot_ = 0;
  while (slot_ < kMostGuarded && slots[slot_].first.load(std::memory_order_relaxed) != nullptr) ++slot_;
  if (slot_ == kMostGuarded) {
    ::munmap(memory, inner + 2 * kPage);
    throw std::bad_alloc();
  }
  Slot& slot = slots[slot_];
  slot.touched_first.store(false, std::memory_order_relaxed);
  slot.touched_last.store(false, std::memory_order_relaxed);
  slot.last.store(last, std::memory_order_release);
  slot.first.store(first, std::memory_order_release);
  if (slot_ >= used.load(std::memory_order_relaxed)) used.store(slot_ + 1, std::memory_order_release);
}

Guarded::~Guarded() {
  const std::lock_guard lock(filling);
  Slot& slot = slots[slot_];
  std::byte* const first = slot.first.load(std::memory_order_relaxed);
  std::byte* const last = slot.last.load(std::memory_order_relaxed);
  slot.first.store(nullptr, std::memory_order_release);
  slot.last.store(nullptr, std::memory_order_release);
  ::munmap(first, static_cast<std::size_t>(last - first) + kPage);
}

std::byte* Guarded::begin() const noexcept {
  return slots[slot_].first.load(std::memory_order_relaxed) + kPage;
}

std::byte* Guarded::end() const noexcept {
  return slots[slot_].last.load(std::memory_order_relaxed);
}

bool Guarded::touched_before() const noexcept {
  return slots[slot_].touched_first.load(std::memory_order_acquire);
}

bool Guarded::touched_after() const noexcept {
  return slots[slot_].touched_last.load(std::memory_order_acquire);
}

}  // namespace col::colcheck

#include "colcheck/engine/memory.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "common/gpu.hpp"

namespace col::colcheck {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kMargin = 64;  // at least, on both sides
constexpr std::size_t kGpuPage = 4096;
constexpr std::byte kPattern{0xa5};

constexpr std::array<std::string_view, kPlacementCount> kPlacements = {"margins", "guard_after", "guard_before",
                                                                       "odd_element", "odd_byte"};

bool is_guarded(Placement placement) {
  return placement == Placement::guard_after || placement == Placement::guard_before;
}

std::size_t shift_of(Placement placement, std::size_t element_size) {
  if (placement == Placement::odd_byte) return 1;
  return placement == Placement::odd_element ? element_size : 0;
}

// ---- Pages that must not be touched

constexpr std::size_t kMostGuarded = 4096;

// What the handler reads. A slot is free when its first page is null; a handler that runs while a slot is filled or
// emptied belongs to a fault elsewhere, and sees either state.
struct Slot {
  std::atomic<std::byte*> first{nullptr};  // the page before the memory
  std::atomic<std::byte*> last{nullptr};   // the page after it
  std::atomic<bool> touched_first{false}, touched_last{false};
};

std::array<Slot, kMostGuarded> slots;
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

std::string_view to_string(Placement placement) {
  return kPlacements[static_cast<std::size_t>(placement)];
}

// `size` bytes of memory between two pages that no code may touch. An access to these pages is allowed to go on (a
// handler of SIGSEGV opens the page), but it is recorded. Other faults end the process as usual.
//
// At most kMostGuarded exist at a time. Accesses are safe from any thread.
class Memory::Pages {
 public:
  // Throws std::system_error, std::bad_alloc.
  explicit Pages(std::size_t size) {
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
  ~Pages() {
    const std::lock_guard lock(filling);
    Slot& slot = slots[slot_];
    std::byte* const first = slot.first.load(std::memory_order_relaxed);
    std::byte* const last = slot.last.load(std::memory_order_relaxed);
    slot.first.store(nullptr, std::memory_order_release);
    slot.last.store(nullptr, std::memory_order_release);
    ::munmap(first, static_cast<std::size_t>(last - first) + kPage);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  // The ends of the memory, whose size is a whole number of pages.
  std::byte* begin() const noexcept { return slots[slot_].first.load(std::memory_order_relaxed) + kPage; }
  std::byte* end() const noexcept { return slots[slot_].last.load(std::memory_order_relaxed); }
  bool touched_before() const noexcept { return slots[slot_].touched_first.load(std::memory_order_acquire); }
  bool touched_after() const noexcept { return slots[slot_].touched_last.load(std::memory_order_acquire); }

 private:
  std::size_t slot_ = 0;
};

// ---- Buffers

Memory::Memory() = default;
Memory::~Memory() = default;

void Memory::assign(const Bytes& content, Placement placement, std::size_t element_size, Device::Type device) {
  size_ = content.size();
  held_.clear();
  pages_.reset();
  gpu_.reset();
  if (device == Device::Type::cuda) return assign_on_gpu(content, placement, element_size);
  if (is_guarded(placement)) {
    pages_ = std::make_unique<Pages>(size_);
    data_ = placement == Placement::guard_after ? pages_->end() - size_ : pages_->begin();
    if (size_ > 0) std::memcpy(data_, content.data(), size_);
    expected_ = content;
    start_ = 0;
    return;
  }
  held_.assign(size_ + 2 * kMargin + 2 * kAlignment, kPattern);
  const auto address = reinterpret_cast<std::uintptr_t>(held_.data()) + kMargin;
  const std::size_t aligned = kMargin + (kAlignment - address % kAlignment) % kAlignment;
  start_ = aligned + shift_of(placement, element_size);
  data_ = held_.data() + start_;
  std::copy(content.begin(), content.end(), data_);
  expected_ = held_;
}

// What the driver allocates begins at a boundary of 256 bytes at least.
void Memory::assign_on_gpu(const Bytes& content, Placement placement, std::size_t element_size) {
  const std::size_t zone = is_guarded(placement) ? kGpuPage : 2 * kMargin;
  const std::size_t room = is_guarded(placement) ? (size_ + kGpuPage - 1) / kGpuPage * kGpuPage : size_;
  start_ = placement == Placement::guard_after ? zone + room - size_ : zone + shift_of(placement, element_size);
  expected_.assign(room + 2 * zone, kPattern);
  std::copy(content.begin(), content.end(), expected_.begin() + static_cast<std::ptrdiff_t>(start_));
  gpu_ = std::make_unique<tools::GpuBuffer>(expected_.size());
  gpu_->write(0, expected_);
  data_ = gpu_->data() + start_;
}

void Memory::expect(std::size_t offset, const Bytes& content) {
  std::copy(content.begin(), content.end(), expected_.begin() + static_cast<std::ptrdiff_t>(start_ + offset));
}

TensorView Memory::view(std::size_t offset, std::size_t count, DType dtype) const {
  return {data_ + offset, count, dtype, gpu_ ? gpu_->device() : Device()};
}

Bytes Memory::read(std::size_t offset, std::size_t bytes) const {
  if (!gpu_) return {data_ + offset, data_ + offset + bytes};
  Bytes content(bytes);
  gpu_->read(start_ + offset, content);
  return content;
}

void Memory::write(std::size_t offset, const Bytes& content) {
  if (gpu_)
    gpu_->write(start_ + offset, content);
  else
    std::copy(content.begin(), content.end(), data_ + offset);
}

std::string Memory::problem(std::size_t element_size) const {
  if (data_ == nullptr) return {};
  if (gpu_) return problem_on_gpu(element_size);
  if (!pages_) return wrong_byte(held_, element_size);
  const std::string wrong = wrong_byte({data_, data_ + size_}, element_size);
  if (!wrong.empty()) return wrong;
  if (pages_->touched_before()) return "the page before the buffer was touched";
  if (pages_->touched_after()) return "the page after the buffer was touched";
  return {};
}

// The GPU says whether there is one, and a copy which: that is what a GPU without kernels of ours is left with.
std::string Memory::problem_on_gpu(std::size_t element_size) const {
  const std::optional<Difference> found = gpu_->compare(expected_);
  if (found && found->count == 0) return {};
  Bytes all(gpu_->size());
  gpu_->read(0, all);
  std::string wrong = wrong_byte(all, element_size);
  if (wrong.empty() && found)
    wrong = fmt::format("the GPU finds {} of {} bytes wrong, the first at {}, and a copy of them on the host is right",
                        found->count, all.size(), found->first);
  return wrong;
}

// `got` is what expected_ is about.
std::string Memory::wrong_byte(const Bytes& got, std::size_t element_size) const {
  const auto [found_at, wanted_at] = std::mismatch(got.begin(), got.end(), expected_.begin());
  if (found_at == got.end()) return {};
  const std::ptrdiff_t at = found_at - got.begin() - static_cast<std::ptrdiff_t>(start_);
  const auto found = std::to_integer<unsigned>(*found_at), wanted = std::to_integer<unsigned>(*wanted_at);
  if (at < 0) return fmt::format("the byte {} before the buffer was overwritten with {:#x}", -at, found);
  if (at >= static_cast<std::ptrdiff_t>(size_))
    return fmt::format("the byte {} after the buffer's end was overwritten with {:#x}",
                       at - static_cast<std::ptrdiff_t>(size_) + 1, found);
  return fmt::format("byte {} of {} (element {}) is {:#x}, not {:#x}", at, size_,
                     at / static_cast<std::ptrdiff_t>(element_size), found, wanted);
}

}  // namespace col::colcheck

// Memory that the ranks of a node share.
#include <col/memory.hpp>

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/log.hpp"
#include "group/call/checks.hpp"
#include "group/call/composite.hpp"
#include "group/call/use.hpp"
#include "group/state.hpp"

namespace col {
namespace {

[[noreturn]] void throw_no_room(std::size_t bytes, const Group::State& group) {
  throw Error(ErrorCode::resource,
              fmt::format("alloc: no room for {} bytes on rank {}; ask for less, or free memory", bytes, group.rank()),
              group.name(), group.rank());
}

// Memory of only this rank. Null if there is none.
std::shared_ptr<void> private_memory(std::size_t bytes) {
  const std::size_t length = std::max<std::size_t>(bytes, 1);
  void* const memory = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  ::madvise(memory, length, MADV_HUGEPAGE);  // large vectors meet fewer misses; without it they work as well
  return {memory, [length](void* pointer) { ::munmap(pointer, length); }};
}

// What alloc() has given and free() has not taken back, in this process.
class Allocations {
 public:
  static Allocations& instance() {
    static Allocations* const kAllocations = make();  // never destroyed: free() may come later than statics
    return *kAllocations;
  }

  void add(const std::shared_ptr<void>& memory, std::size_t bytes, const std::shared_ptr<Group::State>& group) {
    const std::lock_guard lock(mutex_);
    allocations_.emplace(address(memory.get()), Allocation{memory, bytes, group});
  }

  void free(const void* memory) {
    const std::lock_guard lock(mutex_);
    const auto found = allocations_.find(address(memory));
    if (found == allocations_.end()) throw_unknown(memory);
    if (const auto group = found->second.group.lock()) group->require_unused(memory, found->second.bytes);
    allocations_.erase(found);
  }

 private:
  struct Allocation {
    std::shared_ptr<void> memory;  // shared with nobody: what the backend has given
    std::size_t bytes;
    std::weak_ptr<Group::State> group;
  };

  // A forked child frees what its parent had: no other thread may hold the lock when it is made.
  static Allocations* make() {
    ::pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                     [] { instance().mutex_.unlock(); });
    return new Allocations;
  }

  static std::uintptr_t address(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

  [[noreturn]] void throw_unknown(const void* memory) const {
    const auto after = allocations_.upper_bound(address(memory));
    if (after != allocations_.begin()) {
      const auto& [begin, allocation] = *std::prev(after);
      if (address(memory) - begin < allocation.bytes)
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("free: {} lies {} bytes inside what alloc() gave at {}; free that address", memory,
                                address(memory) - begin, allocation.memory.get()));
    }
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("free: {} did not come from col::alloc() in this process, or was freed before; free it once, "
                    "with the function that belongs to where it came from",
                    memory));
  }

  std::mutex mutex_;  // guards what follows; before a group's
  std::map<std::uintptr_t, Allocation> allocations_;
};

}  // namespace

void Group::State::require_unused(const void* memory, std::size_t bytes) {
  require_unused_here(memory, bytes, true);
  if (destroyed_ || is_forked_child() || !host_.all_groups) return;
  for (const Group& other : host_.all_groups()) other.state_->require_unused_here(memory, bytes, false);
}

// `own`: the memory was allocated in this group.
void Group::State::require_unused_here(const void* memory, std::size_t bytes, bool own) {
  if (is_forked_child()) return;
  require_not_inside();
  // in_use_ is not taken: a call that begins meanwhile waits for the lock and is not refused. This is also checked when
  // the group is destroyed, because a call in another thread may not have ended.
  std::unique_lock lock(mutex_, std::defer_lock);
  for (;; std::this_thread::yield()) {
    if (in_use_.load(std::memory_order_acquire)) {
      if (!own) return;  // most likely with memory of its own
      throw own_error(ErrorCode::invalid_argument,
                      "free: the group is in use by another thread, maybe with this memory; free it after that call");
    }
    if (lock.try_lock()) break;  // only who moves the group on holds it without that flag, for moments
  }
  const ConstTensorView whole(memory, bytes, DType::uint8);
  for (const PendingPtr& pending : active_) {
    const bool uses = pending->collective
                          ? group::overlaps(whole, pending->request.in) || group::overlaps(whole, pending->request.out)
                          : std::any_of(pending->legs.begin(), pending->legs.end(),
                                        [&](const group::Leg& leg) { return group::overlaps(whole, leg.view); });
    if (!uses) continue;
    throw own_error(ErrorCode::invalid_argument,
                    fmt::format("free: {} number {} has not ended and uses this memory; wait for it before",
                                pending->name, pending->sequence));
  }
}

std::shared_ptr<void> Group::State::allocate(std::size_t bytes, const Options& options) {
  const Use use(*this);
  check_name(options.group);
  if (parts_.channel == nullptr) {
    auto memory = private_memory(bytes);
    if (memory == nullptr) throw_no_room(bytes, *this);
    return memory;
  }
  const group::Composite composite("alloc");
  const auto exchange = [&](const std::string& words) {
    constexpr std::size_t kBytes = Channel::kMostWords + 1;
    std::vector<char> mine(kBytes), all(kBytes * static_cast<std::size_t>(size()));
    words.copy(mine.data(), Channel::kMostWords);
    Request request;
    request.collective = Collective::allgather;
    request.in = {mine.data(), mine.size(), DType::uint8};
    request.out = {all.data(), all.size(), DType::uint8};
    run_over(host_lane(), request, {.timeout = options.timeout});
    std::vector<std::string> texts;
    for (std::size_t at = 0; at < all.size(); at += kBytes) texts.emplace_back(&all[at]);
    return texts;
  };

  const std::vector<std::string> wishes = exchange(std::to_string(bytes));
  const auto most = [&](const std::string& wish) { return std::count(wishes.begin(), wishes.end(), wish); };
  const auto common =
      std::max_element(wishes.begin(), wishes.end(), [&](const auto& a, const auto& b) { return most(a) < most(b); });
  for (const std::string& wish : wishes) {
    if (wish == *common) continue;
    const auto odd = static_cast<int>(&wish - wishes.data());
    throw error_about(odd, ErrorCode::mismatch,
                      fmt::format("alloc: rank {} asks for {} bytes, rank {} for {}; all ranks must ask for the same",
                                  odd, wish, common - wishes.begin(), *common));
  }
  WaitContext wait(Deadline::after(timeout_of(options)), parts_.surroundings.control.get(), parts_.record);
  if (auto memory = parts_.channel->allocate(bytes, exchange, wait)) return memory;

  if (rank() == 0 && !std::exchange(told_of_memory_, true))
    core::log::info("group '{}': the ranks cannot share memory over backend {}; alloc() gives ordinary memory", name(),
                    backend());
  auto memory = private_memory(bytes);
  const std::vector<std::string> got = exchange(memory != nullptr ? "yes" : "no");
  const auto without = std::find(got.begin(), got.end(), "no");
  if (without == got.end()) return memory;
  const auto poor = static_cast<int>(without - got.begin());
  throw error_about(poor, ErrorCode::resource,
                    fmt::format("alloc: no room for {} bytes on rank {}; ask for less, or free memory", bytes, poor));
}

void* Group::alloc(std::size_t bytes, const Options& options) {
  const std::shared_ptr<State> group = state().shared_from_this();
  const std::shared_ptr<void> memory = group->allocate(bytes, options);
  Allocations::instance().add(memory, bytes, group);
  return memory.get();
}

void* alloc(std::size_t bytes, Group group, const Options& options) {
  return group.alloc(bytes, options);
}

void* alloc(std::size_t bytes, const Options& options) {
  return Context::current().group(options.group).alloc(bytes, options);
}

void free(void* memory) {
  if (memory != nullptr) Allocations::instance().free(memory);
}

void detail::free_or_keep(void* memory) noexcept {
  try {
    col::free(memory);
  } catch (const std::exception& error) {
    core::log::warn("memory that a container gives back is kept: {}", error.what());
  }
}

}  // namespace col

// Memory that the ranks of a node share.
#include <col/memory.hpp>

#include <pthread.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/log.hpp"
#include "group/state.hpp"

namespace col {
namespace {

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
    auto taken = take(memory);
    // Without the lock: the group may have to end a function of the user's first, which may free memory, too.
    try {
      if (const auto group = taken.mapped().group.lock()) group->require_unused(memory, taken.mapped().bytes);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      allocations_.insert(std::move(taken));
      throw;
    }
  }

 private:
  struct Allocation {
    std::shared_ptr<void> memory;  // shared with nobody: what the backend has given
    std::size_t bytes;
    std::weak_ptr<Group::State> group;
  };

  using Map = std::map<std::uintptr_t, Allocation>;

  Map::node_type take(const void* memory) {
    const std::lock_guard lock(mutex_);
    auto taken = allocations_.extract(address(memory));
    if (!taken) throw_unknown(memory);
    return taken;
  }

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

  std::mutex mutex_;  // guards what follows; nobody waits for anything with it
  Map allocations_;
};

}  // namespace

void* Group::alloc(std::size_t bytes, const Options& options) {
  const std::shared_ptr<State> group = state().shared_from_this();
  const std::shared_ptr<void> memory = group->shared_memory().allocate(bytes, options);
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

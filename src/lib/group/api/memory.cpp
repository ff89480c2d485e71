// Memory that the ranks of a node share.
#include <col/memory.hpp>

#include <pthread.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/log.hpp"
#include "group/call/checks.hpp"
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
      if (const auto group = taken.mapped().group.lock()) group->require_unused("free", memory, taken.mapped().bytes);
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

// ---- Memory of others

RegisteredMemory::RegisteredMemory(void* memory, std::size_t bytes, const Group& group)
    : memory_(memory), bytes_(bytes) {
  Group::State& state = group.state();
  const group::Use use(state.access(), state.core().timeout());
  group::Core& core = state.core();
  core.check_name("default");
  if (memory == nullptr || bytes == 0)
    throw core.own_error(ErrorCode::invalid_argument, "register_memory: there is no memory; give its address and size");
  DeviceOps* const gpu = state.lanes().own().can.device;
  if (gpu == nullptr)
    throw core.own_error(
        ErrorCode::unavailable,
        fmt::format(
            "register_memory: the group's backend is {}, which has no use for it; memory from alloc() is shared "
            "where ranks can share it",
            state.lanes().backend()));
  WaitContext wait = core.waiting(Deadline::after(core.timeout()));
  try {
    registration_ = gpu->register_memory(memory, bytes, wait);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::invalid_argument || error.code() == ErrorCode::unavailable) throw;
    core.fail_with_current("register_memory");
  } catch (...) {
    core.fail_with_current("register_memory");
  }
  state_ = state.weak_from_this();
}

RegisteredMemory::~RegisteredMemory() {
  if (!registration_) return;
  try {
    release();
  } catch (const std::exception& error) {
    core::log::warn("memory stays registered to the end of its group: {}", error.what());
    static std::mutex mutex;
    static auto* const kept = new std::vector<std::shared_ptr<void>>;  // as small as the registrations themselves
    const std::lock_guard lock(mutex);
    kept->push_back(std::move(registration_));
  }
}

RegisteredMemory& RegisteredMemory::operator=(RegisteredMemory&& other) noexcept {
  if (this == &other) return *this;
  const RegisteredMemory former(std::move(*this));
  registration_ = std::move(other.registration_);
  state_ = std::move(other.state_);
  memory_ = other.memory_;
  bytes_ = other.bytes_;
  return *this;
}

void RegisteredMemory::release() {
  if (!registration_) return;
  const auto state = state_.lock();
  if (state) state->require_unused("release", memory_, bytes_);
  // Otherwise the channel is gone, or in the process that this one was forked from.
  if (state && !state->access().is_destroyed() && !state->core().is_forked_child()) {
    group::Core& core = state->core();
    const group::Use use(state->access(), core.timeout());
    WaitContext wait = core.waiting(Deadline::after(core.timeout()));
    try {
      if (!core.broken()) state->lanes().own().can.device->release_memory(registration_, wait);
    } catch (...) {
      core.fail_with_current("release");
    }
  }
  registration_.reset();
}

void detail::free_or_keep(void* memory) noexcept {
  try {
    col::free(memory);
  } catch (const std::exception& error) {
    core::log::warn("memory that a container gives back is kept: {}", error.what());
  }
}

void detail::check_writable(const void* memory, std::size_t bytes, const char* what) {
  group::check_written({memory, bytes, DType::uint8}, what, {});
}

}  // namespace col

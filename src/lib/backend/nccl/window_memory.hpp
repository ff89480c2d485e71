// Memory of a GPU that NCCL uses in place.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>

#include "backend/nccl/communicator.hpp"
#include "backend/nccl/device.hpp"
#include "backend/nccl/nccl_library.hpp"
#include "core/clock/lock.hpp"

namespace col::nccl_backend {

// Shared by a channel and the memory that users have from it. They free it in any thread, also while another one is
// inside NCCL for the same communicator, and after the channel has ended.
class NcclUse {
 public:
  // Keeps the mutex for moments. Whoever breaks the channel meanwhile does not wait for it: this thread aborts on its
  // way out.
  class Look {
   public:
    explicit Look(NcclUse& use) : use_(use), lock_(use.mutex) {}
    ~Look() {
      lock_.unlock();
      use_.abort_if_broken();
    }
    Look(const Look&) = delete;
    Look& operator=(const Look&) = delete;

   protected:
    NcclUse& use_;
    std::unique_lock<core::Mutex> lock_;
  };
  // Makes the calling thread the one inside NCCL.
  class Inside : public Look {
   public:
    explicit Inside(NcclUse& use) : Look(use) {
      use_.back_.wait(lock_, [this] { return !use_.is_lent_; });
    }
  };

  // For the thread that is inside, while a Launcher's makes its call, which may wait for other ranks: others may look
  // while `rest` runs, but NCCL gets nothing from them.
  void lend(const std::function<void()>& rest);
  // Requires: a Look.
  bool is_lent() const noexcept { return is_lent_; }

  // Aborts the channel, unless another thread is inside NCCL, which does it then.
  void break_channel() noexcept;

  core::Mutex mutex;  // held by the thread that is inside NCCL, unless it has lent it; guards the next two
  Communicator* communicator = nullptr;  // null once it ends
  std::function<void()> abort;           // throws nothing; empty once the channel ends

 private:
  void abort_if_broken() noexcept;

  bool is_lent_ = false;  // guarded by `mutex`
  core::Condition back_;  // for moments: who lends it has a deadline
  // For this channel: those that share its first cause are aborted by whoever uses them. seq_cst, with `mutex`: who
  // sets it and finds the mutex held is seen by the holder, who looks after it has let go.
  std::atomic<bool> is_broken_{false};
};

// Memory of a GPU that NCCL uses in place: col::alloc() returns it. NCCL allocates it in a form that other GPUs can
// map. From NCCL 2.27 on, all ranks register their parts together as a window, which saves copies. It is no symmetric
// one: NCCL would demand that all ranks pass memory at equal offsets in it (docs/decisions/0023-windows.md).
class WindowMemory {
 public:
  // Throws resource. The memory is not zeroed, and not a window yet. `nccl` must outlive it; the channel of `use`,
  // which they share, need not.
  WindowMemory(const NcclLibrary& nccl, const CudaDriver& cuda, int ordinal, std::size_t bytes,
               std::shared_ptr<NcclUse> use);
  // For a window, waits for the thread that is inside NCCL. Where that, NCCL or the GPU does not let the memory go
  // within some seconds, a thread of its own goes on freeing it. In a forked child, it stays.
  ~WindowMemory();
  WindowMemory(const WindowMemory&) = delete;
  WindowMemory& operator=(const WindowMemory&) = delete;

  void* get() const noexcept { return memory_; }

  // Makes it a window. All ranks call this, for the memory that they have allocated together. Does nothing if NCCL has
  // no windows. Errors as Communicator::settle(). Requires: the device's context is current, and this thread is the one
  // inside NCCL.
  static void make_window(const std::shared_ptr<WindowMemory>& memory, Communicator& communicator, WaitContext& wait);
  // Call it before the communicator ends; it does nothing if it has been called. Requires: as make_window().
  void deregister(Communicator& communicator) noexcept;

 private:
  const NcclLibrary& nccl_;
  // A reference of its own, because the memory may outlive the group; shared: with the thread that frees the memory.
  std::shared_ptr<const GpuDevice> device_;
  const std::size_t bytes_;
  const pid_t pid_;
  const std::shared_ptr<NcclUse> use_;  // shared: with the channel
  void* memory_ = nullptr;
  NcclLibrary::Window window_ = nullptr;
  std::atomic<bool> is_window_{false};
};

}  // namespace col::nccl_backend

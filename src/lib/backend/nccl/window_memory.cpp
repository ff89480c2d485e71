#include "backend/nccl/window_memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "backend/nccl/left_behind.hpp"
#include "backend/nccl/own_thread.hpp"
#include "core/clock/clock.hpp"

namespace col::nccl_backend {
namespace {

// How long freeing memory may hold up who frees it.
constexpr Duration kFreeing = std::chrono::seconds(2);
constexpr Duration kPause = std::chrono::microseconds(50), kLongPause = std::chrono::milliseconds(10);
constexpr int kDefaultWindow = 0;  // as ncclCommWindowRegister() calls its flags

// True if it is taking what it got before: it gets nothing meanwhile.
bool is_busy(Communicator& communicator) noexcept {
  try {
    return communicator.get() != nullptr && communicator.is_busy();
  } catch (const std::exception&) {  // an error of NCCL's: it takes nothing any more
    return false;
  }
}

// NCCL may wait for the peers to take what it got, so not for ever; and without the lock, because a peer may be a
// thread that moves this rank on before it goes on itself. In the blocking form it gets nothing while a thread is
// inside.
void leave_window(const NcclLibrary& nccl, NcclUse& use, NcclLibrary::Window window) {
  for (const Deadline until = Deadline::after(kFreeing);;) {
    {
      const NcclUse::Look look(use);
      if (use.communicator == nullptr || use.communicator->get() == nullptr) return;
      const bool is_inside = use.is_lent() || use.communicator->is_inside();
      if (!is_inside && (until.expired() || !is_busy(*use.communicator))) {
        nccl.CommWindowDeregister(use.communicator->get(), window);
        return;
      }
    }
    core::sleep_for(until.expired() ? kLongPause : kPause);
  }
}

}  // namespace

void NcclUse::lend(const std::function<void()>& rest) {
  struct Lent {
    explicit Lent(NcclUse& of) : use(of) {
      use.is_lent_ = true;
      use.mutex.unlock();
    }
    ~Lent() {
      use.mutex.lock();
      use.is_lent_ = false;
      use.back_.notify_all();
    }
    NcclUse& use;
  };
  const Lent lent(*this);
  rest();
}

void NcclUse::break_channel() noexcept {
  is_broken_ = true;
  abort_if_broken();
}

void NcclUse::abort_if_broken() noexcept {
  if (!is_broken_) return;
  const std::unique_lock use(mutex, std::try_to_lock);
  if (use && !is_lent_ && abort) abort();
}

WindowMemory::WindowMemory(const NcclLibrary& nccl, const CudaDriver& cuda, int ordinal, std::size_t bytes,
                           std::shared_ptr<NcclUse> use)
    : nccl_(nccl),
      device_(std::make_shared<const GpuDevice>(cuda, ordinal)),
      bytes_(std::max<std::size_t>(bytes, 1)),
      pid_(::getpid()),
      use_(std::move(use)) {
  const GpuDevice::Scope scope(*device_);
  const BesideCaptures beside(cuda);
  const ncclResult_t result = nccl_.MemAlloc(&memory_, bytes_);
  if (result == ncclSuccess) return;
  throw Error(ErrorCode::resource, fmt::format("nccl: cannot allocate {} bytes of GPU {}: {}", bytes, ordinal,
                                               nccl_.GetErrorString(result)));
}

// In a thread of its own, as all of it may wait: for the thread that is inside NCCL, for NCCL, and for all work on the
// GPU, which may wait for ranks that never come. Without the lock where there is no window to leave: the thread that
// ends the channel may hold it, and wait for this one.
WindowMemory::~WindowMemory() {
  if (::getpid() != pid_) {  // no CUDA is there any more, and another thread may have been inside NCCL
    leave_content_behind(device_);
    return;
  }
  try {
    const NcclLibrary::Window window = is_window_.exchange(false) ? window_ : nullptr;
    ends_within(kFreeing, [&nccl = nccl_, device = device_, use = use_, window, memory = memory_] {
      try {
        const GpuDevice::Scope scope(*device);
        const BesideCaptures beside(device->cuda());
        if (window != nullptr) leave_window(nccl, *use, window);
        nccl.MemFree(memory);
      } catch (const std::exception&) {  // the driver is shutting down, and takes it back
      }
    });
  } catch (const std::exception&) {  // no memory for the thread: it stays
  }
}

void WindowMemory::make_window(const std::shared_ptr<WindowMemory>& memory, Communicator& communicator,
                               WaitContext& wait) {
  const NcclLibrary& nccl = communicator.nccl();
  if (nccl.CommWindowRegister == nullptr) return;
  wait.describe("the ranks to register memory with NCCL");
  communicator.give_job(
      "cannot register memory",
      [&nccl, comm = communicator.get(), memory] {
        return nccl.CommWindowRegister(comm, memory->memory_, memory->bytes_, &memory->window_, kDefaultWindow);
      },
      memory, wait);
  memory->is_window_ = true;
}

void WindowMemory::deregister(Communicator& communicator) noexcept {
  if (is_window_.exchange(false) && communicator.get() != nullptr)
    nccl_.CommWindowDeregister(communicator.get(), window_);
}

}  // namespace col::nccl_backend

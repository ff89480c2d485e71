// The thread that makes NCCL's calls on blocking communicators, which wait inside for other ranks: so that the user's
// thread does not, and keeps its deadline (docs/decisions/0035-blocking-communicators.md).
#pragma once

#include <nccl.h>

#include <cstddef>
#include <functional>
#include <memory>

#include "backend/nccl/device.hpp"
#include "backend/nccl/nccl_library.hpp"
#include "core/clock/lock.hpp"

namespace col::nccl_backend {

// Its functions are called by one thread at a time.
class Launcher {
 public:
  // The device is current in the thread, whose calls no capture of a graph minds. Throws what GpuDevice throws, and
  // resource if there can be no thread.
  Launcher(const CudaDriver& cuda, int ordinal);
  // Leaves the thread behind, with what it uses, if it has not come back from its call. It then ends when it does.
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  // Hands the call over. Requires: is_free().
  void begin(NcclCall call);
  // True if the thread has come back from what it was given.
  bool is_free() const noexcept;
  // Looks for a moment whether it comes back.
  void await_briefly() const noexcept;
  // Of the last call. Requires: is_free().
  ncclResult_t result() const noexcept;
  // The thread calls it when it ends.
  void at_end(std::function<void()> last);
  // How many calls it was given so far.
  std::size_t hand_overs() const noexcept;

 private:
  struct Shared;
  static void run(Shared& shared);

  const std::shared_ptr<Shared> shared_;  // with the thread
  core::Thread thread_;
};

}  // namespace col::nccl_backend

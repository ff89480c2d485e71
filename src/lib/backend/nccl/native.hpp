// Collectives of one communicator: NCCL's own where it has them, groups of its sends and receives otherwise.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <col/backend.hpp>

#include "backend/nccl/communicator.hpp"
#include "backend/nccl/device.hpp"

namespace col::nccl_backend {

// Used as its communicator is: by one thread, with the device's context current.
class Native {
 public:
  // Both must outlive it. Throws what GpuMemory and GpuEvent throw.
  Native(Communicator& communicator, const GpuDevice& device, int rank, int size);

  // What this version of NCCL can do.
  std::span<const NativeEntry> entries() const noexcept { return entries_; }
  // Starts the collective in `stream`; `wait` bounds how long NCCL takes to accept it. Throws unavailable for operators
  // that NCCL does not have, and what Communicator::settle() throws.
  void run(const Request& request, CUstream stream, WaitContext& wait);
  // Whether the call needs memory besides its buffers.
  bool needs_scratch(const Request& request) const noexcept;
  // Gives its memory back.
  void release() noexcept;
  // Leaves it where it is, in a forked child.
  void forget() noexcept;

 private:
  struct Call;  // one run()

  void start(const Call& call, ncclResult_t result) const;
  void reduction(const Call& call) const;
  void broadcast(const Call& call) const;
  void allgather(const Call& call) const;
  void gather(const Call& call) const;
  void scatter(const Call& call) const;
  void alltoall(const Call& call);
  void alltoall(const Call& call, const void* in) const;
  void barrier(const Call& call) const;
  void exchange(const Call& call, std::span<const std::size_t> to, const void* in, std::span<const std::size_t> from,
                void* out) const;
  void copy(const Call& call, const void* from, void* to, std::size_t bytes) const;
  void* take_scratch(const Call& call, std::size_t bytes);

  Communicator& communicator_;
  const GpuDevice& device_;
  const int rank_, size_;
  std::vector<NativeEntry> entries_;
  std::unique_ptr<GpuMemory> byte_;  // of the barrier
  // The last is in use. Those before were too small, and are kept: to free memory waits for all that the device does.
  std::vector<std::unique_ptr<GpuMemory>> scratch_;
  std::size_t scratch_bytes_ = 0;
  std::unique_ptr<GpuEvent> scratch_free_;  // after who used it last, maybe in another stream
};

}  // namespace col::nccl_backend

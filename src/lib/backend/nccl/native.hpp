// Collectives of one communicator: NCCL's own where it has them, groups of its sends and receives otherwise, and with
// our kernels between them where something is reduced that NCCL does not reduce, or not in rank order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <col/backend.hpp>

#include "backend/nccl/communicator.hpp"
#include "backend/nccl/device.hpp"
#include "backend/nccl/kernels.hpp"

namespace col::nccl_backend {

// Used as its communicator is: by one thread, with the device's context current.
class Native {
 public:
  // Both must outlive it. Requires: nothing of this communicator runs on the device. Throws what GpuMemory and GpuEvent
  // throw.
  Native(Communicator& communicator, const GpuDevice& device, int rank, int size);

  // What this version of NCCL, and this build, can do.
  std::span<const NativeEntry> entries() const noexcept { return entries_; }
  // Throws unavailable, or what has kept the kernels from being loaded, when the operator cannot be applied.
  void check(const Request& request) const;
  // Starts the collective in `stream`; `wait` bounds how long NCCL takes to accept it. Throws what check() and
  // Communicator::settle() throw.
  void run(const Request& request, CUstream stream, WaitContext& wait);
  // Whether the call needs memory besides its buffers.
  bool needs_scratch(const Request& request) const noexcept;
  // Gives its memory back.
  void release() noexcept;
  // Leaves it where it is, in a forked child.
  void forget() noexcept;

 private:
  // One run().
  struct Call {
    const Request& request;
    CUstream stream;
    WaitContext& wait;
    const NcclLibrary& nccl;
    ncclComm_t comm;
  };
  struct Piece;  // of a fold
  static constexpr std::string_view kFold = "fold";

  void start(const Call& call, ncclResult_t result) const;
  void reduction(const Call& call) const;
  void broadcast(const Call& call) const;
  void allgather(const Call& call) const;
  void gather(const Call& call) const;
  void scatter(const Call& call) const;
  void alltoall(const Call& call);
  void alltoall(const Call& call, ConstTensorView in) const;
  void barrier(const Call& call) const;
  void exchange(const Call& call, std::span<const ConstTensorView> to, std::span<const TensorView> from) const;
  void copy(const Call& call, const void* from, void* to, std::size_t bytes) const;
  void* take_scratch(const Call& call, std::size_t bytes);

  // native_fold.cpp
  bool folds(const Request& request) const noexcept;
  void fold(const Call& call);
  void fold(const Call& call, const Piece& piece) const;
  void return_results(const Call& call, const Piece& piece, TensorView result) const;
  const std::uint64_t* gather_factors(const Call& call, std::uint64_t* factors) const;

  Communicator& communicator_;
  const GpuDevice& device_;
  const int rank_, size_;
  std::unique_ptr<Kernels> kernels_;
  std::vector<NativeEntry> entries_;
  std::unique_ptr<GpuMemory> byte_;  // of the barrier
  // The last is in use. Those before were too small, and are kept: to free memory waits for all that the device does.
  std::vector<std::unique_ptr<GpuMemory>> scratch_;
  std::size_t scratch_bytes_ = 0;
  std::unique_ptr<GpuEvent> scratch_free_;  // after who used it last, maybe in another stream
};

}  // namespace col::nccl_backend

// Collectives of one communicator. They are NCCL's own if it has them, otherwise groups of its sends and receives. If
// NCCL does not have a reduction, or not in rank order, our kernels run between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <col/request.hpp>

#include "backend/nccl/communicator.hpp"
#include "backend/nccl/device.hpp"
#include "backend/nccl/kernels.hpp"

namespace col::nccl_backend {

// Used like its communicator: by one thread, with the device's context current.
class Native {
 public:
  // Both must outlive it. Requires: no work of this communicator runs on the device. Throws what GpuMemory and GpuEvent
  // throw.
  Native(Communicator& communicator, const GpuDevice& device, int rank, int size);

  // What this version of NCCL and this build can do.
  std::span<const NativeEntry> entries() const noexcept { return entries_; }
  // Throws unavailable, or the error of loading the kernels, if the operator cannot be applied.
  void check(const Request& request) const;
  // Starts the collective in `stream`. `wait` bounds how long NCCL takes to accept it. Throws what check() and
  // Communicator::settle() throw.
  void run(const Request& request, CUstream stream, WaitContext& wait);
  // The same for several that do not depend on each other, in one launch; our own kernels follow it.
  void run_together(std::span<const Request* const> requests, CUstream stream, WaitContext& wait);
  // Whether the call needs memory in addition to its buffers.
  bool needs_scratch(const Request& request) const noexcept;
  // Frees its memory.
  void release() noexcept;
  // Gives up its memory without freeing it, in a forked child.
  void forget() noexcept;

 private:
  // One run().
  struct Call {
    const Request& request;
    CUstream stream;
    WaitContext& wait;
    const NcclLibrary& nccl;
    ncclComm_t comm;
    Together* together = nullptr;  // what is started with others; null for what is started by itself
  };
  struct Piece;  // of a fold
  static constexpr std::string_view kFold = "fold";

  struct RootedCounts {
    std::vector<std::size_t> at_root, elsewhere;
  };

  struct Row;
  static const Row kRows[];

  void allreduce(const Call& call);
  void reduce(const Call& call);
  void reduce_scatter(const Call& call);
  void broadcast(const Call& call);
  void allgather(const Call& call);
  void allgatherv(const Call& call);
  void gather(const Call& call);
  void scatter(const Call& call);
  void alltoall(const Call& call);
  void run_row(const Call& call);
  std::vector<ConstTensorView> keep_inputs(std::span<const Request* const> requests, const Call& any);
  void alltoall_from(const Call& call, ConstTensorView in) const;
  void barrier(const Call& call);
  RootedCounts rooted_counts(const Request& request, std::span<const std::size_t> counts, std::size_t block) const;
  static std::string doing(const Call& call);
  // Starts a function of NCCL's, or gives it to what the call is started with. Copies the arguments, as the function
  // may be called later.
  template <class Function, class... Arguments>
  void start(const Call& call, Function function, Arguments... arguments) const {
    auto nccl_call = [function = std::move(function), arguments...] { return function(arguments...); };
    if (call.together != nullptr)
      call.together->add(std::move(nccl_call));
    else
      communicator_.give(doing(call), std::move(nccl_call), call.wait);
  }
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
  // The last one is in use. Earlier ones were too small and are kept, because freeing memory waits for all work of the
  // device.
  std::vector<std::unique_ptr<GpuMemory>> scratch_;
  std::size_t scratch_bytes_ = 0;
  std::unique_ptr<GpuEvent> scratch_free_;  // recorded after its last use, maybe in another stream
};

}  // namespace col::nccl_backend

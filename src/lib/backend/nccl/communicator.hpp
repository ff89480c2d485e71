// One rank's NCCL communicator. It is of the kind that never blocks: what NCCL has under way is asked for, again and
// again, against a deadline.
#pragma once

#include <functional>
#include <string_view>
#include <utility>

#include <col/backend.hpp>

#include "backend/nccl/nccl_library.hpp"

namespace col::nccl_backend {

// Used by one thread at a time, since NCCL must not be called while a communicator is aborted.
class Communicator {
 public:
  // Connects to the ranks that have the same `id`. Requires: the device's context is current, as for all calls.
  // `nccl` must outlive it. Throws what wait.check() throws, and what settle() throws.
  Communicator(const NcclLibrary& nccl, const ncclUniqueId& id, int rank, int size, WaitContext& wait);
  // Ends it in good order when it is whole and all ranks do so within a moment; aborts it otherwise.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  ncclComm_t get() const noexcept { return comm_; }
  const NcclLibrary& nccl() const noexcept { return nccl_; }

  // Waits until NCCL has taken what gave `result`. Throws its error, if it is one: peer_lost (NCCL lost a connection),
  // resource, io, or internal. `doing` as in "cannot start the allreduce".
  void settle(ncclResult_t result, std::string_view doing, WaitContext& wait);
  // Whether NCCL is still taking what it was given last; until then, it must not be given more. Throws as check().
  bool is_busy() const;
  // Throws what has gone wrong meanwhile, in NCCL's own threads.
  void check() const;
  // Gives up what is under way on this rank. The other ranks go on waiting until they abort as well. Where ranks are
  // threads, what runs on the GPU may go on for a moment, until the last of them has aborted or ended its own.
  void abort() noexcept;
  // Called between the looks of settle(); what it throws ends that.
  void on_wait(std::function<void()> look) { look_ = std::move(look); }
  // What NCCL's `result` is in our terms.
  Error error_of(ncclResult_t result, std::string_view doing) const;

 private:
  void connect(const ncclUniqueId& id, int rank, int size, WaitContext& wait);
  ncclResult_t state() const noexcept;

  const NcclLibrary& nccl_;
  ncclComm_t comm_ = nullptr;  // null once aborted
  std::function<void()> look_;
};

}  // namespace col::nccl_backend

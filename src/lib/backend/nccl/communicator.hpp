// One GPU's NCCL communicator. It is of the kind that never blocks: what NCCL has under way is asked for, again and
// again, against a deadline.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <utility>

#include <col/backend.hpp>

#include "backend/nccl/device.hpp"
#include "backend/nccl/nccl_library.hpp"

namespace col::nccl_backend {

// A rank's place among those that connect.
struct Membership {
  ncclUniqueId id;  // equal on all of them
  int rank = 0, size = 1;
  bool has_shared_gpus = false;  // on all of them, when some are on one GPU
};

// Used by one thread at a time, since NCCL must not be called while a communicator is aborted.
class Communicator {
 public:
  // Begins to connect `device` to the others that have the same `id`, and returns; several of one thread begin between
  // GroupStart() and GroupEnd(), as each waits for the others. `nccl` and `device` must outlive it. Throws what
  // settle() throws.
  Communicator(const NcclLibrary& nccl, const GpuDevice& device, const Membership& membership);
  // end_all() for one.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // What NCCL's functions take. The device's context is current while they are called.
  ncclComm_t get() const noexcept { return comm_; }
  const NcclLibrary& nccl() const noexcept { return nccl_; }

  // Waits until all are connected. Throws what wait.check() throws, and what settle() throws.
  void await_connection(WaitContext& wait);
  // Waits until NCCL has taken what gave `result`. Throws its error, if it is one: peer_lost (NCCL lost a connection),
  // resource, io, or internal. `doing` as in "cannot start the allreduce".
  void settle(ncclResult_t result, std::string_view doing, WaitContext& wait);
  // Whether NCCL is still taking what it was given last; until then, it must not be given more. Throws as check().
  bool is_busy() const;
  // Throws what has gone wrong meanwhile, in NCCL's own threads.
  void check() const;
  // Called between the looks of settle(); what it throws ends that.
  void on_wait(std::function<void()> look) { look_ = std::move(look); }
  // What NCCL's `result` is in our terms.
  Error error_of(ncclResult_t result, std::string_view doing) const;

 private:
  friend void end_all(std::span<Communicator* const> all) noexcept;
  friend void revoke_all(std::span<Communicator* const> all) noexcept;
  friend void abort_all(std::span<Communicator* const> all) noexcept;

  void begin_end() noexcept;
  void begin_revoke() noexcept;
  void await_end(WaitContext& wait) noexcept;
  void destroy() noexcept;
  void abort() noexcept;
  template <class Call>
  void on_device(Call call) noexcept;
  ncclResult_t state() const noexcept;

  const NcclLibrary& nccl_;
  const GpuDevice& device_;
  ncclComm_t comm_ = nullptr;          // null once it has ended
  bool connected_ = false;             // and not being ended: what runs can be revoked
  ncclResult_t ending_ = ncclSuccess;  // of what begin_end() or begin_revoke() has begun
  bool ended_ = false;                 // as await_end() has found
  std::function<void()> look_;
};

// Both take all of one thread's communicators that may wait for each other: one by one, the first would wait for a
// second that this thread has not come to. Those that have ended before are passed over.
//
// Ends them in good order where they are whole and all their ranks do so within a moment; aborts them otherwise.
void end_all(std::span<Communicator* const> all) noexcept;
// Gives up what is under way on this rank, and the communicators. Where NCCL can revoke, what runs on the GPU has ended
// when they are destroyed; where it cannot, or is not done with it in a moment, they are aborted. The other ranks go on
// waiting until they abort as well. Where ranks are threads, what runs on the GPU and was aborted may go on for a
// moment, until the last of them has aborted or ended its own.
void abort_all(std::span<Communicator* const> all) noexcept;

}  // namespace col::nccl_backend

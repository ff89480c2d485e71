// One GPU's NCCL communicator. In its non-blocking form NCCL goes on in threads of its own, and the program polls it
// for its progress; in its blocking form a Launcher makes the calls, and the program polls that. Either way until a
// deadline.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <col/channel.hpp>

#include "backend/nccl/device.hpp"
#include "backend/nccl/launcher.hpp"
#include "backend/nccl/nccl_library.hpp"
#include "backend/nccl/settings.hpp"

namespace col::nccl_backend {

// A rank's place among the ranks that connect.
struct Membership {
  ncclUniqueId id;  // equal on all of them
  int rank = 0, size = 1;
  bool has_shared_gpus = false;  // equal on all of them; true if some share a GPU
  std::string name = {};         // for profilers
  Settings settings = {};        // equal on all of them
};

// Used by one thread at a time, because NCCL must not be called while a communicator is aborted.
class Communicator {
 public:
  // One that is to connect `device` to the others that have the same `id`. `launcher`: as make_launcher() has it,
  // shared by those of one thread, which NCCL gets work for together. `nccl` and `device` must outlive it.
  Communicator(const NcclLibrary& nccl, const GpuDevice& device, const Membership& membership,
               std::shared_ptr<Launcher> launcher);
  // As end_all() for one.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // The handle for NCCL's functions. The device's context must be current during their calls.
  ncclComm_t get() const noexcept { return comm_; }
  const NcclLibrary& nccl() const noexcept { return nccl_; }

  // Of a communicator of that device: null in the non-blocking form. Throws what Launcher throws.
  static std::shared_ptr<Launcher> make_launcher(const NcclLibrary& nccl, const GpuDevice& device);

  // Connects it, and waits until all are connected. Throws what settle() throws.
  void connect(WaitContext& wait);
  // Makes it one of some of the ranks of `parent`, which shares connections with it, and its end by an error. All ranks
  // of the parent make one together; those of no new one with an empty membership (size 0), and theirs has no handle.
  // The `id` is not needed. Requires: nothing that `parent` was given is still running. Throws what settle() throws;
  // then `parent` is to be aborted, and after it this one by abort_split().
  void split_from(Communicator& parent, int color, WaitContext& wait);
  void abort_split(const Communicator& parent) noexcept;
  // As connect() in steps, for several of one thread, each of which waits for the others: connection() of all of them
  // is one call, which one of them gives; then all await_connection().
  NcclCall connection() const;
  void await_connection(WaitContext& wait);

  // Gives NCCL a call, which owns what it uses. `doing` as in "cannot start the allreduce". Requires: what it got
  // before has been settled. Throws the error that NCCL answers with at once: peer_lost (NCCL lost a connection),
  // resource, io, or internal.
  template <class Call>
  void begin(std::string_view doing, Call&& call) {
    doing_ = doing;
    if (launcher_ == nullptr) {
      result_ = call();
      take_handle();
      return throw_if_refused();
    }
    launcher_->begin(std::forward<Call>(call));
    is_handed_over_ = true;
  }
  // Waits until NCCL has taken what it was given. Throws what wait.check() and begin() throw.
  void settle(WaitContext& wait);
  template <class Call>
  void give(std::string_view doing, Call&& call, WaitContext& wait) {
    begin(doing, std::forward<Call>(call));
    settle(wait);
  }
  // As give(), for what NCCL goes on with in the background even if it says that it succeeded. If that does not come to
  // an end, it keeps `used`, which it may still write to, for as long as the communicator.
  void give_job(std::string_view doing, NcclCall call, std::shared_ptr<const void> used, WaitContext& wait);
  // Another communicator of this thread has given NCCL a call that is about this one, too.
  void note_begun(std::string_view doing);
  // Whether NCCL is still taking the last work that it got. Until it has, it must not get more. Throws as check().
  bool is_busy();
  // Throws an error that has happened meanwhile in NCCL's own threads.
  void check() const;
  // settle() calls `look` while it polls. An exception from it ends settle(). In the blocking form, `rest` runs the
  // pauses of settle().
  using Rest = std::function<void(const std::function<void()>& pause)>;
  void on_wait(std::function<void()> look, Rest rest = nullptr) {
    look_ = std::move(look);
    rest_ = std::move(rest);
  }
  // In the blocking form, true if the thread is inside NCCL, which then gets nothing but a revoke.
  bool is_inside() const noexcept { return launcher_ != nullptr && !launcher_->is_free(); }
  // Call it when work has become part of a graph. Such a communicator is not freed after an error: the graph reads from
  // it when the program destroys the graph.
  void note_graph() noexcept { has_graphs_ = true; }
  bool has_graphs() const noexcept { return has_graphs_; }
  // NCCL's `result` as our Error.
  Error error_of(ncclResult_t result, std::string_view doing) const;

 private:
  friend bool end_all(std::span<Communicator* const> all, const Communicator* spared) noexcept;
  friend void revoke_all(std::span<Communicator* const> all) noexcept;
  friend void abort_all(std::span<Communicator* const> all) noexcept;
  friend void destroy_all(std::span<Communicator* const> all) noexcept;
  using Last = ncclResult_t (*NcclLibrary::*)(ncclComm_t);  // CommDestroy or CommAbort
  friend void finish(std::span<Communicator* const> all, Last last) noexcept;
  struct Part;
  class Call;

  // What NCCL makes of it: shared with the thread that connects it.
  struct Made {
    ncclComm_t comm = nullptr;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id{};
    int rank = 0, size = 1;
    std::shared_ptr<const std::string> name;  // see name_
  };

  void configure(ncclConfig_t& config, const Membership& membership) const;
  bool is_taking();
  void throw_if_refused() const;
  void take_handle() noexcept;
  // Both return those that have begun to end.
  static std::vector<Communicator*> begin_end(std::span<Communicator* const> all, WaitContext& wait) noexcept;
  static std::vector<Communicator*> begin_revoke(std::span<Communicator* const> all, const Deadline& until) noexcept;
  void await_end(WaitContext& wait) noexcept;
  void leave() noexcept;
  // `made`: of one that is being made.
  void leave_to_thread(const std::shared_ptr<Made>& made) noexcept;
  ncclResult_t state() const noexcept;

  const NcclLibrary& nccl_;
  const GpuDevice& device_;
  const std::shared_ptr<Launcher> launcher_;  // shared: see the constructor; null in the non-blocking form
  std::shared_ptr<Made> made_;                // null once it is connected, or has ended
  ncclComm_t comm_ = nullptr;                 // null before, once it has ended, or is left to itself
  std::string doing_;                         // of the last call
  ncclResult_t result_ = ncclSuccess;         // of the last call, as far as it is known
  bool is_handed_over_ = false;               // the launcher has its result
  bool connected_ = false;                    // and not being ended: running work can be revoked
  bool has_graphs_ = false;                   // that may still be there
  ncclResult_t ending_ = ncclSuccess;         // the result of begin_end() or begin_revoke()
  bool ended_ = false;                        // as await_end() has found
  bool is_left_ = false;                      // something of it goes on, or has to stay
  std::function<void()> look_;
  Rest rest_;
  std::shared_ptr<const std::string> name_;  // shared: with the thread that ends it; NCCL keeps the pointer
  std::shared_ptr<const void> used_;         // shared: by a job of NCCL's, and by whoever has begun it
};

// Both functions take all communicators of one thread that may wait for each other. One by one, the first would wait
// for a second one that this thread has not come to. Communicators that have ended before are skipped. What NCCL does
// not end within some seconds goes on in a thread of its own, which keeps what it needs.
//
// end_all() ends them in good order if they are whole and all their ranks end them too within a moment. Otherwise it
// aborts them; but `spared`, one of them whose abort would end the work of others, is left to itself then. False: one
// has not come to its end, and work of it may still run on the GPU, or run again from a graph.
bool end_all(std::span<Communicator* const> all, const Communicator* spared = nullptr) noexcept;
// Gives up the running work of this rank, and the communicators. If NCCL can revoke, the work on the GPU has ended when
// they are destroyed. If it cannot, or does not finish within a moment, they are aborted. The other ranks go on waiting
// until they abort too. If ranks are threads, aborted work on the GPU may go on for a moment, until the last of them
// has aborted or ended its own.
void abort_all(std::span<Communicator* const> all) noexcept;

}  // namespace col::nccl_backend

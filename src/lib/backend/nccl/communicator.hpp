// One GPU's NCCL communicator. In its non-blocking form, NCCL goes on in threads of its own, and the program polls
// NCCL; in its blocking form, a Launcher makes the calls, and the program polls the Launcher. Polling ends at a
// deadline in both.
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

// A rank's place among the ranks that connect, and what they agree on.
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
  // Makes a communicator, which connect() then connects to the others with the same `id`. `launcher` comes from
  // make_launcher(). The communicators of one thread share it: NCCL gets their work together. `nccl` and `device` must
  // outlive it.
  Communicator(const NcclLibrary& nccl, const GpuDevice& device, const Membership& membership,
               std::shared_ptr<Launcher> launcher);
  // Ends it as end_all() does.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // The handle for NCCL's functions. The device's context must be current during their calls.
  ncclComm_t get() const noexcept { return comm_; }
  const NcclLibrary& nccl() const noexcept { return nccl_; }

  // The launcher for communicators of that device; null in the non-blocking form. Throws the errors of Launcher.
  static std::shared_ptr<Launcher> make_launcher(const NcclLibrary& nccl, const GpuDevice& device);

  // Connects it, and waits until all are connected. Throws the errors of settle().
  void connect(WaitContext& wait);
  // Makes it the communicator of some ranks of `parent`. The two share connections, and an error that ends one ends the
  // other. All ranks of `parent` call it together; a rank that is in no new communicator has an empty membership (size
  // 0), and gets no handle. The `id` is not needed. Requires: no work of `parent` is still running. Throws the errors
  // of settle(); then abort `parent` first, and this one by abort_split().
  void split_from(Communicator& parent, int color, WaitContext& wait);
  void abort_split(const Communicator& parent) noexcept;
  // connect() in two steps, for several communicators of one thread that wait for each other: one of them gives NCCL
  // the connection() of all of them in one call; then each calls await_connection().
  NcclCall connection() const;
  void await_connection(WaitContext& wait);

  // Gives NCCL a call, which owns what it uses. `doing` is for messages: "cannot start the allreduce". Requires:
  // settle() has returned after the call before. Throws the error that NCCL answers with at once: peer_lost (NCCL lost
  // a connection), resource, io, or internal.
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
  // Waits until NCCL has taken the call. Throws the errors of wait.check() and begin().
  void settle(WaitContext& wait);
  template <class Call>
  void give(std::string_view doing, Call&& call, WaitContext& wait) {
    begin(doing, std::forward<Call>(call));
    settle(wait);
  }
  // As give(), for a call that NCCL continues in the background even after it has reported success. If the call does
  // not end, the communicator keeps `used` as long as it lives, because NCCL may still write to it.
  void give_job(std::string_view doing, NcclCall call, std::shared_ptr<const void> used, WaitContext& wait);
  // Another communicator of this thread has given NCCL a call that is about this one, too.
  void note_begun(std::string_view doing);
  // True if NCCL is still taking the last work that it got. Until it has, give it no more. Throws as check().
  bool is_busy();
  // Throws the error that has happened in NCCL's own threads, if any.
  void check() const;
  // settle() calls `look` while it polls. An exception from it ends settle(). In the blocking form, `rest` runs the
  // pauses of settle().
  using Rest = std::function<void(const std::function<void()>& pause)>;
  void on_wait(std::function<void()> look, Rest rest = nullptr) {
    look_ = std::move(look);
    rest_ = std::move(rest);
  }
  // In the blocking form, true if the thread is inside NCCL. Until it comes out, NCCL gets no call except a revoke.
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

  // The parts that NCCL fills when it connects: shared with the thread that does so.
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
  // Both return the communicators that have begun to end.
  static std::vector<Communicator*> begin_end(std::span<Communicator* const> all, WaitContext& wait) noexcept;
  static std::vector<Communicator*> begin_revoke(std::span<Communicator* const> all, const Deadline& until) noexcept;
  void await_end(WaitContext& wait) noexcept;
  void leave() noexcept;
  // `made`: that of a communicator which NCCL is still connecting.
  void leave_to_thread(const std::shared_ptr<Made>& made) noexcept;
  ncclResult_t state() const noexcept;

  const NcclLibrary& nccl_;
  const GpuDevice& device_;
  const std::shared_ptr<Launcher> launcher_;  // shared: see the constructor; null in the non-blocking form
  std::shared_ptr<Made> made_;                // null once it is connected, or has ended
  ncclComm_t comm_ = nullptr;                 // null until connected, after its end, and once it is left to itself
  std::string doing_;                         // of the last call
  ncclResult_t result_ = ncclSuccess;         // of the last call, if it is known yet
  bool is_handed_over_ = false;               // the launcher has its result
  bool connected_ = false;                    // and not being ended: running work can be revoked
  bool has_graphs_ = false;                   // graphs that use it may still exist
  ncclResult_t ending_ = ncclSuccess;         // the result of begin_end() or begin_revoke()
  bool ended_ = false;                        // as await_end() has found
  bool is_left_ = false;                      // its work may still go on, or its memory has to stay
  std::function<void()> look_;
  Rest rest_;
  std::shared_ptr<const std::string> name_;  // shared: with the thread that ends it; NCCL keeps the pointer
  std::shared_ptr<const void> used_;         // shared: by a job of NCCL's, and by whoever has begun it
};

// Both functions take all communicators of one thread that may wait for each other. One by one, the first would wait
// for a second one that this thread has not come to. Communicators that have ended before are skipped. If NCCL does not
// end one within some seconds, that goes on in a thread of its own, which keeps what it needs.
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

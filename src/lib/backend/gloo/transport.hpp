// Gloo's TCP transport with waits that end and failures that name a rank.
//
// Left alone, the packaged Gloo waits on one condition variable for the whole timeout, closes every connection when it
// expires, forgets buffers that are in transfer when a connection fails, and throws on its event thread (which ends the
// process) when a message is longer than the buffer posted for it or a stranger talks to its port. The subclasses here
// replace the waiting and the failing, and nothing of what moves data:
//
//   GuardedContext  the connections of one rank in one group; knows the WaitContext of the call in progress
//   GuardedPair     one connection; turns exceptions of the event thread into its own failure
//   GuardedBuffer   memory being sent or received; waits in slices
//
// Locks, in this order: a pair's mutex, then a buffer's. WaitContext::check() is called with none of them held.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <gloo/transport/tcp/context.h>
#include <gloo/transport/tcp/pair.h>
#include <gloo/transport/tcp/unbound_buffer.h>

#include <col/error.hpp>
#include <col/job.hpp>

#include "backend/gloo/device.hpp"
#include "backend/gloo/handshaking.hpp"
#include "backend/gloo/introduction.hpp"

namespace col::gloo_backend {

namespace tcp = ::gloo::transport::tcp;

class GuardedBuffer;
class GuardedPair;

class GuardedContext final : public tcp::Context {
 public:
  // `token`: the group's.
  GuardedContext(std::shared_ptr<tcp::Device> device, int rank, int size, std::uint64_t token);
  ~GuardedContext() override;

  std::unique_ptr<::gloo::transport::Pair>& createPair(int rank) override;
  std::unique_ptr<::gloo::transport::UnboundBuffer> createUnboundBuffer(void* data, std::size_t size) override;

  Credentials& credentials() noexcept { return credentials_; }

  // Makes `wait` the one that waits in this context obey, for the life of the scope. For the thread that uses the
  // channel; `wait` may be null for calls that do not wait.
  class WaitScope {
   public:
    WaitScope(GuardedContext& context, WaitContext* wait) noexcept : context_(context), previous_(context.wait_) {
      context_.wait_ = wait;
    }
    ~WaitScope() { context_.wait_ = previous_; }
    WaitScope(const WaitScope&) = delete;
    WaitScope& operator=(const WaitScope&) = delete;

   private:
    GuardedContext& context_;
    WaitContext* previous_;
  };

  // How long a wait may sleep before it calls check().
  std::chrono::nanoseconds slice() const noexcept;
  // Throws when the wait has to end: the cause the context was broken with, what `extra_check` and the WaitContext
  // throw. `what` is waited for, `peer` the rank it comes from (-1: not a single one).
  void check(std::string what, int peer);
  // Called by every check(); an empty function removes it. For the time of connecting.
  void set_extra_check(std::function<void()> extra_check) { extra_check_ = std::move(extra_check); }

  // Breaks the context: every wait in it ends, and the peers see their connections to this rank close. The first cause
  // stays. Any thread.
  void break_off(const Error& cause) noexcept;
  bool broken() const noexcept { return broken_.load(std::memory_order_acquire); }
  // The cause; nothing while not broken.
  std::optional<Error> cause() const;
  void throw_if_broken() const;

  // The rank whose connection failed with exactly this exception; -1 when none did.
  int rank_that_failed_with(const std::exception_ptr& failure);
  // The ranks that have a transfer of `buffer` unfinished.
  std::vector<int> ranks_in_transfer(const tcp::UnboundBuffer& buffer);

  // Tells all peers that this rank leaves in good order, for those who wait for whoever sends first. Never fails: a
  // peer that cannot be told has left, or takes this rank for lost.
  void say_goodbye() noexcept;
  // Why nobody of `sources` can be waited for any more: the failure of one that went without a goodbye, or of the last
  // when all of them went; null while there is none.
  std::exception_ptr why_lost(const std::vector<int>& sources);
  // Called by a pair that has closed, with its mutex held.
  void count_closed() noexcept { closed_.fetch_add(1, std::memory_order_release); }

 private:
  GuardedPair* pair(int rank);
  bool said_goodbye(int rank);

  Credentials credentials_;
  WaitContext* wait_ = nullptr;
  std::function<void()> extra_check_;
  std::atomic<bool> broken_{false};  // release after cause_ is set, acquire before it is read
  // Connections that have closed. Release after the pair's failure is set, acquire before it is looked for: so that
  // nobody needs to take the mutexes of pairs that are well.
  std::atomic<int> closed_{0};
  mutable std::mutex cause_mutex_;
  std::optional<Error> cause_;
};

class GuardedPair final : public Handshaking<tcp::Pair> {
 public:
  GuardedPair(GuardedContext& context, tcp::Device* device, int rank);
  ~GuardedPair() override;

  // Whether no stranger got in while it was made.
  bool starts_well();
  // Ends both directions of the connection now; the event thread closes it when it sees that.
  void shut() noexcept;
  std::exception_ptr failure();
  bool in_transfer(const tcp::UnboundBuffer& buffer);

  void handleEvents(int events) override;

 protected:
  void handleReadWrite(int events) override;
  void changeState(state next) noexcept override;
  void waitUntilConnected(std::unique_lock<std::mutex>& lock, bool use_timeout) override;

 private:
  // All private functions: the pair's mutex is held.
  void fail(const std::string& why);
  bool stuck();
  void unwatch_and_close() noexcept;
  template <class Visit>
  void for_each_transfer(Visit visit);

  GuardedContext& guarded_;
  int misses_ = 0;  // in a row, of the mutex; for the event thread only
};

class GuardedBuffer final : public tcp::UnboundBuffer {
 public:
  GuardedBuffer(std::shared_ptr<GuardedContext> context, void* data, std::size_t size);

  // Receives from whichever of `sources` sends first. Receives of one slot take messages in the order of their posting
  // only when all of them, from the first such one on, are posted in this way.
  void recv_from_first(std::vector<int> sources, std::uint64_t slot, std::size_t bytes);

  // Both ignore `timeout`: the WaitContext rules.
  bool waitRecv(int* rank, std::chrono::milliseconds timeout) override;
  bool waitSend(int* rank, std::chrono::milliseconds timeout) override;
  // The peer of a receive (a send) that has completed, which is then taken; nothing while there is none. Throws when it
  // failed.
  std::optional<int> test_recv();
  std::optional<int> test_send();

  // Ends the waits of this buffer with `failure`, unless it has failed before.
  void fail(const std::exception_ptr& failure) noexcept;

 private:
  struct Direction {
    const char* verb;
    int& completions;
    bool& interrupted;
    std::condition_variable& changed;
  };
  Direction receiving() { return {"receive from", recvCompletions_, abortWaitRecv_, recvCv_}; }
  Direction sending() { return {"send to", sendCompletions_, abortWaitSend_, sendCv_}; }
  bool wait(const Direction& direction, std::unique_lock<std::mutex>& lock);
  bool test(const Direction& direction);
  void check_while_waiting(const Direction& direction);
  std::exception_ptr why_lost();

  GuardedContext& guarded_;
  std::vector<int> sources_;  // of recv_from_first(); else empty
};

}  // namespace col::gloo_backend

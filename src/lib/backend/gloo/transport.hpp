// Gloo's TCP transport, with waits that end and failures that name a rank.
//
// The packaged Gloo has four problems. It waits on one condition variable for the whole timeout, and closes every
// connection when it expires. It forgets buffers that are in transfer when a connection fails. It throws on its event
// thread (which ends the process) when a message is longer than its buffer, or when a stranger talks to its port. The
// subclasses here replace the waiting and the error handling, and nothing that moves data:
//
//   GuardedContext  the connections of one rank in one group; knows the WaitContext of the call in progress
//   GuardedPair     one connection; turns exceptions of the event thread into its own failure
//   GuardedBuffer   memory being sent or received; waits in slices
//
// Gloo's public functions allow none of this: these classes override protected ones, and read protected members. That
// is done here, in transport.cpp and in its part handshaking.hpp, and nowhere else. Everything else uses Gloo as
// anybody can. A test names the versions of Gloo for which this holds (tests/unit/gloo/version_test.cpp).
//
// Lock order: a pair's mutex, then a buffer's. No lock is held during a call of WaitContext::check().
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
#include <utility>
#include <vector>

#include <gloo/context.h>
#include <gloo/transport/tcp/context.h>
#include <gloo/transport/tcp/pair.h>
#include <gloo/transport/tcp/unbound_buffer.h>

#include <col/error.hpp>
#include <col/job.hpp>

#include "backend/channel_checks.hpp"
#include "backend/gloo/device.hpp"
#include "backend/gloo/introduction.hpp"
#include "core/hash.hpp"

namespace col::gloo_backend {

namespace tcp = ::gloo::transport::tcp;

using Buffer = std::unique_ptr<::gloo::transport::UnboundBuffer>;

// Gloo pairs a send and a receive on a connection by a 64-bit slot. Its own collectives use slots with a first byte of
// 0x01 to 0x08, then a 32-bit tag, then 24 bits of their own. Our slots begin with 0x80 or more, so the two never meet.
// The length in bytes is part of every slot and tag. So a receive of another length than the send's stays unpaired (the
// wait ends at its deadline, or finds the mismatch). It never reaches Gloo's check for messages that are too long.
inline constexpr std::uint64_t kMessagePrefix = 0x80ULL << 56;
inline constexpr std::uint64_t kProofSlot = 0xff00'0000'0000'0001ULL;
// A send that is announced and never made. It says that its rank leaves in good order.
inline constexpr std::uint64_t kGoodbyeSlot = 0xff00'0000'0000'0002ULL;

constexpr std::uint64_t message_slot(std::uint64_t slot, std::size_t bytes) noexcept {
  return kMessagePrefix | (core::Hash().add(slot).add(bytes).value() >> 8);
}

class GuardedPair;

class GuardedContext final : public tcp::Context {
 public:
  // `token`: the group's token.
  GuardedContext(std::shared_ptr<tcp::Device> device, int rank, int size, std::uint64_t token);
  ~GuardedContext() override;

  std::unique_ptr<::gloo::transport::Pair>& createPair(int rank) override;
  Buffer createUnboundBuffer(void* data, std::size_t size) override;

  Credentials& credentials() noexcept { return credentials_; }

  // As long as the scope lives, waits in this context follow `wait`. For the thread that uses the channel. `wait` may
  // be null for calls that do not wait.
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
  // Throws if the wait has to end: the cause with which the context was broken, or what `extra_check` and the
  // WaitContext throw. `what` is waited for. `peer` is the rank that it comes from (-1: not a single one).
  void check(std::string what, int peer);
  // Every check() calls it; an empty function removes it. Used while connecting.
  void set_extra_check(std::function<void()> extra_check) { extra_check_ = std::move(extra_check); }

  // Breaks the context: every wait in it ends, and the peers see that their connections to this rank close. The first
  // cause stays. Any thread may call it.
  void break_off(const Error& cause) noexcept;
  bool broken() const noexcept { return cause_.is_set(); }
  const backend::FirstCause& cause() const noexcept { return cause_; }

  // The rank whose connection failed with exactly this exception; -1 if there is none.
  int rank_that_failed_with(const std::exception_ptr& failure);
  // The ranks with an unfinished transfer of `buffer`.
  std::vector<int> ranks_in_transfer(const tcp::UnboundBuffer& buffer);

  // Tells all peers that this rank leaves in good order, for ranks that wait for a message from any rank. Never fails:
  // a peer that cannot be told has left, or takes this rank for lost.
  void say_goodbye() noexcept;
  // Why it is useless to wait for any of `sources`: the failure of one that left without a goodbye, or that of the last
  // one if all have left. Null if there is no reason.
  std::exception_ptr why_lost(const std::vector<int>& sources);
  // A pair that has closed calls it, with its mutex held.
  void count_closed() noexcept { closed_.fetch_add(1, std::memory_order_release); }

 private:
  GuardedPair* pair(int rank);
  bool said_goodbye(int rank);

  Credentials credentials_;
  WaitContext* wait_ = nullptr;
  std::function<void()> extra_check_;
  backend::FirstCause cause_;
  // The number of connections that have closed. Release after the pair's failure is set, acquire before it is looked
  // for. So nobody needs to lock the mutexes of healthy pairs.
  std::atomic<int> closed_{0};
};

class GuardedBuffer final : public tcp::UnboundBuffer {
 public:
  GuardedBuffer(std::shared_ptr<GuardedContext> context, void* data, std::size_t size);

  // Receives from the first one of `sources` that sends. Receives of one slot take messages in the order of their
  // posting only if all receives of that slot, from the first such one on, are posted in this way.
  void recv_from_first(std::vector<int> sources, std::uint64_t slot, std::size_t bytes);

  // Both ignore `timeout`: the WaitContext decides.
  bool waitRecv(int* rank, std::chrono::milliseconds timeout) override;
  bool waitSend(int* rank, std::chrono::milliseconds timeout) override;
  // The peer of a receive (a send) that has completed, which then counts as taken; nothing if there is none. Throws if
  // it failed.
  std::optional<int> test_recv();
  std::optional<int> test_send();

  // Ends the waits of this buffer with `failure`, unless it failed before.
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

// What Gloo's collectives take: rank, size, and the connections.
class Mesh final : public ::gloo::Context {
 public:
  Mesh(std::shared_ptr<LoopDevice> device, std::shared_ptr<GuardedContext> transport)
      : ::gloo::Context(transport->rank, transport->size), loop_(std::move(device)), guarded_(std::move(transport)) {
    device_ = loop_;
    transportContext_ = guarded_;
    setTimeout(::gloo::kNoTimeout);
  }

  LoopDevice& loop() const { return *loop_; }
  GuardedContext& transport() const { return *guarded_; }

 private:
  // Shared with Gloo, whose buffers and contexts hold them too.
  std::shared_ptr<LoopDevice> loop_;
  std::shared_ptr<GuardedContext> guarded_;
};

// Gloo has one type for both directions; a buffer that is only sent is only read.
inline Buffer buffer_of(const Mesh& mesh, const void* data, std::size_t bytes) {
  return mesh.transport().createUnboundBuffer(const_cast<void*>(data), bytes);
}

}  // namespace col::gloo_backend

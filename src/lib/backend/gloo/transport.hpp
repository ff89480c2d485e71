// The transport below Gloo's collectives and the channel: connections that are made when two ranks first talk, waits
// that end, and failures that name a rank.
//
//   GuardedContext  one rank of one group: its port, its connections, its event thread
//   GuardedBuffer   memory being sent or received
//   Mesh            what Gloo's collectives take
//
// It implements Gloo's abstract classes, and uses none of Gloo's own transports
// (docs/decisions/0027-lazy-connections.md).
//
// One mutex guards a context with all its connections and buffers. Nothing that blocks is done under it: sockets do not
// block, and WaitContext::check() is called without it. A thread that waits serves the connections meanwhile. The event
// thread serves them when no call does, and stands aside while calls follow one another: else it would wake for every
// message that comes between two of them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <gloo/context.h>
#include <gloo/transport/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <col/channel.hpp>
#include <col/error.hpp>
#include <col/job.hpp>

#include "backend/capabilities.hpp"
#include "backend/channel_checks.hpp"
#include "backend/gloo/address.hpp"
#include "backend/gloo/connection.hpp"
#include "backend/gloo/credentials.hpp"
#include "backend/gloo/frames.hpp"
#include "backend/gloo/heartbeat.hpp"
#include "backend/gloo/inbox.hpp"
#include "backend/gloo/kinship.hpp"
#include "backend/gloo/lobby.hpp"
#include "backend/gloo/operation.hpp"
#include "backend/gloo/standby.hpp"
#include "core/clock/lock.hpp"

namespace col::gloo_backend {

using Buffer = std::unique_ptr<::gloo::transport::UnboundBuffer>;

// A send and a receive pair by a 64-bit slot. Gloo's own collectives use slots with a first byte of 0x01 to 0x08, then
// a 32-bit tag, then 24 bits of their own. Ours begin with 0x80 or more, so the two never meet. The slot of a channel's
// message is its stream, and frames say what it is of that stream (frames.hpp).
inline constexpr std::uint64_t kStreamPrefix = 0x80ULL << 56;
inline constexpr std::uint64_t kBlockPrefix = 0x88ULL << 56;
inline constexpr std::uint64_t kMeetingSlot = 0xa0'00'00'00'00'00'00'01ULL;
inline constexpr std::uint64_t kGreetingSlot = 0xa0'00'00'00'00'00'00'02ULL;

constexpr std::uint64_t stream_slot(std::uint64_t slot) noexcept {
  return kStreamPrefix | slot >> 32;
}
constexpr Content content_of(std::uint64_t slot) noexcept {
  return static_cast<Content>(slot & kSlotContent);
}
// For the blocks of one call.
constexpr std::uint64_t block_slot(std::uint64_t fingerprint) noexcept {
  return kBlockPrefix | fingerprint >> 8;
}

// What a context is to know of its group.
struct Membership {
  int rank = 0;
  std::uint64_t token = 0;                   // the group's
  Kinship kin{1};                            // of all ranks
  std::vector<std::string> host_names = {};  // by rank; may be empty if all are on one host
  HeartbeatSpec heartbeat = {};
  bool is_crowded = false;  // its host has more ranks than processors
};

class GuardedContext final : public ::gloo::transport::Context, private FrameSink, private LobbyOwner {
 public:
  // Descriptors that a context has from its start on, beside its connections.
  static constexpr int kDescriptors = net::Poller::kDescriptors + 1;

  // Listens at `interface`. Throws Error.
  GuardedContext(const Interface& interface, Membership member);
  // Starts the event thread. Until then, only waits serve the connections.
  void start();
  // Closes the connections. What was written is delivered.
  ~GuardedContext() override;

  // Gloo's connections, which nothing uses (no_pair.hpp).
  std::unique_ptr<::gloo::transport::Pair>& createPair(int peer) override;
  // The context has to outlive the buffer.
  Buffer createUnboundBuffer(void* data, std::size_t bytes) override;

  // Where this rank is, and where others are. A rank whose address is not known is not called, but may call.
  const Address& address() const { return lobby_.address(); }
  void set_address(int peer, Address address);
  const Interface& interface() const { return interface_; }
  const HeartbeatSpec& heartbeat() const { return heartbeat_; }
  const Kinship& kin() const { return kin_; }
  // Waits until all of `peers` have been connected to this rank. One that has gone since may have returned from this,
  // and failed in its first call: whoever uses the group hears of it. Of two ranks, the higher one calls. Used while
  // connecting, in a WaitScope.
  void connect_to(std::span<const int> peers);
  // The first of `peers` that is lost, as far as this rank knows; -1: none.
  int first_lost(std::span<const int> peers);

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

  // Every check of a wait calls it, with the ranks that are waited for; an empty function removes it. Used while
  // connecting.
  using ExtraCheck = std::function<void(const std::vector<int>& awaited)>;
  void set_extra_check(ExtraCheck extra_check) { extra_check_ = std::move(extra_check); }

  // Breaks the context: every wait in it ends, and the peers see that their connections to this rank close. The first
  // cause stays. Any thread may call it.
  void break_off(const Error& cause) noexcept;
  bool broken() const noexcept { return cause_.is_set(); }
  const backend::FirstCause& cause() const noexcept { return cause_; }

  // The rank whose connection failed with exactly this exception; -1 if there is none.
  int rank_that_failed_with(const std::exception_ptr& failure);
  // The loss of a host, if one is known: the ranks that it leaves waiting go, too. Null if there is none.
  std::exception_ptr lost_host();
  // Tells all peers that this rank leaves in good order, for ranks that wait for a message from any rank, and waits
  // until what was written has arrived. Never fails: a peer that cannot be told has left, or takes this rank for lost.
  void say_goodbye() noexcept;
  // Why it is useless to wait for any of `sources`: the failure of one that left without a goodbye, or that of the last
  // one if all have left. Null if there is no reason.
  std::exception_ptr why_lost(const std::vector<int>& sources);
  // See backend::SideOps and backend::WireOps.
  backend::SideOps::Probed probe(std::span<const int> sources, std::uint64_t line);
  void on_change(std::function<void()> ring);
  void progress();
  void may_sleep();
  // How many connections there are.
  int connections();

 private:
  friend class GuardedBuffer;

  // Messages of one line with one peer.
  struct Line {
    std::deque<OperationPtr> announced;  // sends that wait for their ready
    std::deque<Frame> ready;             // that no send has used
    std::deque<OperationPtr> expected;   // receives whose ready was sent
    std::size_t covered = 0;             // announced by the peer, and answered by a ready of `expected`

    bool is_empty() const { return announced.empty() && ready.empty() && expected.empty(); }
  };
  struct Peer {
    int rank = -1;
    std::optional<Address> address = {};
    std::unique_ptr<Connection> connection = {};         // once one of the two has something to say
    std::unordered_map<std::uint64_t, Line> lines = {};  // none is empty
    std::size_t kept_there = 0;                          // what it may have to keep of this rank's eager messages
    std::size_t unsaid = 0;                              // of its own ones, what has been taken here and not said
    std::exception_ptr failure = {};                     // why there is no connection any more
    bool has_met = false;                                // it is connected, or has been
    bool has_left = false;                               // in good order
    // It was connected, and went without a word; or another rank says so.
    bool is_said_lost = false;
    bool is_unreachable = false;  // there was no connection to be had: it has left, or it is dead
    bool is_dirty = false;        // in dirty_
    PulseOf pulse = {};           // of one on another host

    bool is_open() const { return connection != nullptr && connection->is_open(); }
  };

  // ---- For buffers. The caller holds the mutex.
  void post_send(const OperationPtr& operation);
  void post_recv(const OperationPtr& operation);
  void withdraw(const OperationPtr& operation);  // its buffer ends
  // Serves the connections for at most `timeout`, once. Returns whether anything has happened.
  bool turn(std::unique_lock<core::Mutex>& lock, Duration timeout);
  // Leaves what turn() has begun to the event thread.
  void hand_on() noexcept;
  // Who of `sources` has gone.
  struct Gone {
    bool is_lost = false;        // one of them has, without a goodbye
    bool are_all = false;        // all of them have, in good order
    std::exception_ptr failure;  // of the lost one, else of the last one that has gone
  };
  Gone gone_locked(std::span<const int> sources) const;
  std::exception_ptr why_lost_locked(std::span<const int> sources) const;

  // ---- For buffers; without the mutex.
  Duration slice() const noexcept { return wait_ != nullptr ? wait_->slice() : Duration::zero(); }
  // Throws if the wait has to end: the cause with which the context was broken, or what the extra check and the
  // WaitContext throw. `ranks` are waited for.
  void look_around(const char* verb, const std::vector<int>& ranks);
  // Also makes the connections to them, so that it is known when they end.
  void check(const char* verb, const std::vector<int>& ranks);

  // ---- Connections (transport.cpp). The caller holds the mutex.
  void serve();  // the event thread; takes the mutex
  void stand_aside(std::unique_lock<core::Mutex>& lock);
  bool handle(std::span<const epoll_event> events);  // whether much of a long message has come
  bool move_on(Peer& peer, bool has_ended);
  void write(Peer& peer);
  Connection& connection_of(Peer& peer);  // for something to write
  void put(Peer& peer, const Frame& frame, OperationPtr operation = nullptr);
  void flush();
  void require_connection(Peer& peer);
  void require_descriptors() const;
  void close(Peer& peer, const std::exception_ptr& why);
  void hang_up(Peer& peer) noexcept;
  void do_what_is_due();
  Peer& peer_of(int peer) { return peers_.at(static_cast<std::size_t>(peer)); }
  bool wants(int peer) const override;
  void connected(int peer, core::UniqueFd socket) override;
  void unreachable(int peer, std::exception_ptr why) override;

  // ---- Who has gone (transport.cpp)
  void tell(const Frame& news, int except);
  void hear(const Frame& news, int from);
  bool has_gone(int peer) const;
  void look_for_parent();

  // ---- Whether other hosts live (heartbeat.cpp)
  bool is_far(int other) const;
  void begin_to_look();
  void say_that_it_lives(Peer& peer);
  void look_at_hosts(Lobby::Clock::time_point now);
  void give_up(int other, HostFault fault);
  void lose_host(int other, HostFault fault, int from);
  Error host_error(int other, HostFault fault) const;

  // ---- Messages (messages.cpp)
  Payload place_for(int peer, const Frame& frame) override;
  void arrived(int peer, const Frame& frame, Payload payload) override;
  void written(const OperationPtr& operation) override;
  void hear_ready(Peer& peer, const Frame& frame);
  void hear_taken(Peer& peer, const Frame& frame);
  void hear_message(int peer, const Frame& frame, std::unique_ptr<char[]> content);
  void take(const OperationPtr& receive, Arrival arrival);
  void say_ready(Peer& peer, const OperationPtr& receive, bool is_announced);
  void note_taken(int peer, std::size_t bytes);
  void say_taken(Peer& peer);
  void complete(const OperationPtr& operation, int peer);
  void fail(const OperationPtr& operation, const std::exception_ptr& mismatch);
  OperationPtr next_receive(const Peer& from, std::uint64_t line) const;
  template <class Message>
  bool fits(int peer, const Message& message, const OperationPtr& receive);
  static void forget_if_empty(Peer& peer, std::uint64_t line);

  Credentials credentials_;
  const Interface interface_;
  const Kinship kin_;
  const std::vector<std::string> host_names_;
  const HeartbeatSpec heartbeat_;
  const bool is_crowded_;
  WaitContext* wait_ = nullptr;  // of the thread that uses the channel
  ExtraCheck extra_check_;
  backend::FirstCause cause_;

  mutable core::Mutex mutex_;               // guards what follows
  net::Poller poller_{&throw_errno, true};  // thread safe, but for its calls that change what is watched
  Lobby lobby_;
  std::vector<Peer> peers_;
  Inbox inbox_;
  std::uint64_t received_ = 0;           // posts
  std::vector<GuardedBuffer*> buffers_;  // all there are
  std::vector<int> dirty_;               // with something new to write
  std::vector<int> unfinished_;          // with more to read or to write, of which no event tells
  int gone_ = 0;                         // peers with a failure
  int parent_ = -1;                      // towards which news of others come: kinship.hpp
  std::optional<Lobby::Clock::time_point> look_for_parent_at_;
  std::optional<Lobby::Clock::time_point> look_at_hosts_at_;  // empty: it has no connection to another host yet
  Lobby::Clock::time_point looked_at_hosts_{};
  std::exception_ptr lost_host_;
  std::exception_ptr mismatch_;  // of the first message that did not fit its receive

  Standby standby_;        // of the event thread
  bool has_news_ = false;  // something has happened that a call in a wait has not seen yet
  core::Condition comes_back_;
  std::function<void()> ring_;  // of on_change()
  core::Thread thread_;
};

class GuardedBuffer final : public ::gloo::transport::UnboundBuffer {
 public:
  GuardedBuffer(GuardedContext& context, void* data, std::size_t bytes);
  ~GuardedBuffer() override;

  void send(int peer, std::uint64_t slot, std::size_t offset, std::size_t bytes) override;
  void recv(int peer, std::uint64_t slot, std::size_t offset, std::size_t bytes) override;
  void recv(std::vector<int> peers, std::uint64_t slot, std::size_t offset, std::size_t bytes) override;
  // A channel's messages: `slot` is one of col/channel.hpp.
  void send_message(int peer, std::uint64_t slot, std::size_t bytes);
  void recv_message(int peer, std::uint64_t slot, std::size_t bytes);
  // Receives from the first one of `sources` that sends. Receives of one stream take messages in the order of their
  // posting only if all receives of that stream, from the first such one on, are posted in this way.
  void recv_message_from_first(std::vector<int> sources, std::uint64_t slot, std::size_t bytes);

  // Both ignore `timeout`: the WaitContext decides.
  bool waitRecv(int* rank, std::chrono::milliseconds timeout) override;
  bool waitSend(int* rank, std::chrono::milliseconds timeout) override;
  void abortWaitRecv() override { interrupt(received_); }
  void abortWaitSend() override { interrupt(sent_); }
  // The peer of a receive (a send) that has completed, which then counts as taken; nothing if there is none. Throws if
  // it failed.
  std::optional<int> test_recv() { return test(received_); }
  std::optional<int> test_send() { return test(sent_); }

 private:
  friend class GuardedContext;

  // All of it is guarded by the context's mutex.
  struct Direction {
    const char* verb;
    bool sends;
    // Gloo's rings have two receives under way, of two lengths, and take the first that a wait returns for the older
    // one. So operations complete in the order of their posting, though small messages overtake large ones.
    std::deque<OperationPtr> posted = {};  // that are not yet counted as completed
    int completions = 0;
    int peer = -1;  // of the last that has completed
    bool interrupted = false;
  };

  void post(Operation operation);
  bool poll(std::unique_lock<core::Mutex>& lock, Direction& direction);
  bool wait(Direction& direction, int* rank);
  std::optional<int> test(Direction& direction);
  bool is_done(Direction& direction);
  void interrupt(Direction& direction);
  std::vector<int> awaited(const Direction& direction) const;

  // For the context, which holds its mutex.
  void complete(const OperationPtr& operation, int peer);
  void fail(const std::exception_ptr& failure) {
    if (failure_ == nullptr) failure_ = failure;
  }
  void fail_if_with(int peer, const std::exception_ptr& failure);
  void fail_if_unfinished(const std::exception_ptr& failure) {
    if (!unfinished_.empty()) fail(failure);
  }

  GuardedContext& context_;
  std::size_t place_ = 0;  // in the context's list
  Direction received_{.verb = "receive from", .sends = false};
  Direction sent_{.verb = "send to", .sends = true};
  std::vector<OperationPtr> unfinished_;
  std::vector<int> sources_;  // of a receive from several; else empty
  std::exception_ptr failure_;
};

// What Gloo's collectives take: rank, size, and the connections.
class Mesh final : public ::gloo::Context {
 public:
  explicit Mesh(std::shared_ptr<GuardedContext> transport)
      : ::gloo::Context(transport->rank, transport->size), guarded_(std::move(transport)) {
    transportContext_ = guarded_;
    setTimeout(std::chrono::milliseconds::zero());  // none: our waits have deadlines of their own
  }

  GuardedContext& transport() const { return *guarded_; }

 private:
  std::shared_ptr<GuardedContext> guarded_;  // shared with the base class
};

// Gloo has one type for both directions; a buffer that is only sent is only read.
inline Buffer buffer_of(const Mesh& mesh, const void* data, std::size_t bytes) {
  return mesh.transport().createUnboundBuffer(const_cast<void*>(data), bytes);
}

}  // namespace col::gloo_backend

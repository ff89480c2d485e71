#include "support/memory_channel.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/clock/lock.hpp"
#include "core/clock/this_process.hpp"

namespace col::test {
namespace {

using core::Clock;
using Lock = std::unique_lock<core::Mutex>;

std::uint64_t stream_of(std::uint64_t slot) {
  return slot & ~kSlotContent;
}

struct Message {
  int from = 0;
  std::uint64_t slot = 0;
  std::vector<std::byte> bytes;
  Clock::time_point arrives;
  std::uint64_t send = 0;  // the sender's ticket
};

struct Receive {
  int from = 0;  // or kAnyPeer
  std::uint64_t slot = 0;
  TensorView data;
  std::uint64_t ticket = 0;
};

// A word of another rank: that it has broken the group.
struct Abort {
  Clock::time_point arrives;
  int by = 0;
  Error why;
};

struct Member {
  std::list<Message> inbox;            // in the order of arrival
  std::list<Receive> receives;         // in the order of posting
  std::map<std::uint64_t, int> ended;  // tickets of operations that have ended, and with whom
  std::map<std::uint64_t, int> open;   // tickets of those that have not, and whom they wait for
  std::string mismatch;                // what this rank has to throw; empty: nothing
  int posts = 0;
  bool entered = false;
  bool closed = false;
  std::int64_t pid = 0;                     // since it has entered
  std::vector<Clock::time_point> closings;  // by rank: when this one hears that it has closed
  std::vector<Abort> aborts;
};

// All that the ranks of one group share. Requires: `mutex` is held, wherever anything else than is_taken is touched.
struct Hub {
  Hub(int size, std::uint64_t seed)
      : members(static_cast<std::size_t>(size)), random(seed), is_taken(static_cast<std::size_t>(size)) {
    for (Member& one : members) one.closings.assign(members.size(), Clock::time_point::max());
  }

  core::Mutex mutex;
  core::Condition changed;
  std::vector<Member> members;
  std::mt19937_64 random;
  std::uint64_t tickets = 0;
  std::vector<bool> is_taken;  // by rank: it has come for this hub; guarded by the backend's lock

  Member& member(int rank) { return members[static_cast<std::size_t>(rank)]; }

  // Gives rank `to` what has arrived by `now`, message by message to the first receive of its stream.
  void deliver(int to, Clock::time_point now) {
    Member& receiver = member(to);
    for (auto message = receiver.inbox.begin(); message != receiver.inbox.end() && message->arrives <= now;) {
      const auto receive = std::find_if(receiver.receives.begin(), receiver.receives.end(), [&](const Receive& one) {
        return (one.from == kAnyPeer || one.from == message->from) && stream_of(one.slot) == stream_of(message->slot);
      });
      if (receive == receiver.receives.end()) {
        ++message;
        continue;
      }
      if (receive->slot != message->slot || receive->data.bytes() != message->bytes.size()) {
        receiver.mismatch = fmt::format("rank {} sent {} bytes where {} are received, or of another content",
                                        message->from, message->bytes.size(), receive->data.bytes());
        return;
      }
      if (!message->bytes.empty()) std::memcpy(receive->data.data, message->bytes.data(), message->bytes.size());
      end(receiver, receive->ticket, message->from);
      end(member(message->from), message->send, to);
      receiver.receives.erase(receive);
      message = receiver.inbox.erase(message);
      changed.notify_all();
    }
  }

  static void end(Member& member, std::uint64_t ticket, int peer) {
    if (member.open.erase(ticket) > 0) member.ended.emplace(ticket, peer);
  }

  // Adds a message behind those that must not be overtaken by it.
  void add(int to, Message message) {
    auto& inbox = member(to).inbox;
    for (const Message& before : inbox) {
      if (before.from == message.from && stream_of(before.slot) == stream_of(message.slot))
        message.arrives = std::max(message.arrives, before.arrives);
    }
    const auto place =
        std::find_if(inbox.begin(), inbox.end(), [&](const Message& other) { return other.arrives > message.arrives; });
    inbox.insert(place, std::move(message));
  }
};

std::string describe_options(const MemoryOptions& options) {
  return fmt::format("memory of this process, delays up to {} us, seed {}", options.longest_delay.count() / 1000,
                     options.seed);
}

class MemoryChannel final : public Channel, public MemoryExtras {
 public:
  MemoryChannel(const ConnectRequest& request, std::shared_ptr<Hub> hub, const MemoryOptions& options)
      : group_(request.group),
        rank_(request.rank),
        hub_(std::move(hub)),
        options_(options),
        network_(network_of(options)) {
    for (const PeerInfo& peer : request.peers) pids_.push_back(peer.pid);
  }
  ~MemoryChannel() override {
    const Lock lock(hub_->mutex);
    close();
  }

  Ticket post_send(int peer, std::uint64_t slot, ConstTensorView data) override {
    const Lock lock(hub_->mutex);
    enter();
    check_peer(peer);
    count_post();
    Message message;
    message.from = rank_;
    message.slot = slot;
    message.arrives = arrival(peer);
    message.send = ++hub_->tickets;
    const auto* const begin = static_cast<const std::byte*>(data.data);
    if (!data.empty()) message.bytes.assign(begin, begin + data.bytes());
    const Ticket ticket{message.send};
    (options_.rendezvous ? self().open : self().ended).emplace(ticket.id, peer);
    hub_->add(peer, std::move(message));
    hub_->changed.notify_all();
    return ticket;
  }

  Ticket post_recv(int peer, std::uint64_t slot, TensorView data) override {
    const Lock lock(hub_->mutex);
    enter();
    if (peer != kAnyPeer || hub_->members.size() == 1) check_peer(peer);
    count_post();
    const Ticket ticket{++hub_->tickets};
    self().receives.push_back({peer, slot, data, ticket.id});
    self().open.emplace(ticket.id, peer);
    return ticket;
  }

  std::optional<int> test(Ticket ticket) override {
    const Lock lock(hub_->mutex);
    enter();
    check_ticket(ticket);
    return look(ticket);
  }

  int wait(Ticket ticket, WaitContext& wait) override {
    Lock lock(hub_->mutex);
    enter();
    check_ticket(ticket);
    for (;;) {
      if (const auto peer = look(ticket)) return *peer;
      hub_->changed.wait_for(lock, std::min(wait.slice(), next_arrival()));
      if (self().ended.count(ticket.id) != 0) continue;
      const int peer = self().open.at(ticket.id);
      lock.unlock();
      wait.describe(peer == kAnyPeer ? std::string("any rank") : fmt::format("rank {}", peer));
      try {
        wait.check();
      } catch (const Error& error) {
        lock.lock();
        fail(error);
      }
      lock.lock();
    }
  }

  bool take_at_once(int peer, std::uint64_t slot, TensorView data) noexcept override {
    const Lock lock(hub_->mutex);
    if (cause_ || !self().receives.empty()) return false;
    const auto now = Clock::now();
    auto& inbox = self().inbox;
    const auto message = std::find_if(inbox.begin(), inbox.end(), [&](const Message& one) {
      return one.from == peer && one.arrives <= now && stream_of(one.slot) == stream_of(slot);
    });
    if (message == inbox.end() || message->slot != slot || message->bytes.size() != data.bytes()) return false;
    if (!message->bytes.empty()) std::memcpy(data.data, message->bytes.data(), message->bytes.size());
    Hub::end(hub_->member(peer), message->send, rank_);
    inbox.erase(message);
    hub_->changed.notify_all();
    return true;
  }

  std::span<const NativeEntry> native_entries() const override { return {}; }
  Ticket start_native(const Request&, WaitContext&) override {
    const Lock lock(hub_->mutex);
    fail(error(ErrorCode::internal, "this backend has no collectives of its own"));
  }

  void abort(const Error& cause) noexcept override {
    const Lock lock(hub_->mutex);
    break_off(cause);
  }

 private:
  static Network* network_of(const MemoryOptions& options) { return options.network ? options.network() : nullptr; }

  Member& self() const { return hub_->member(rank_); }
  int size() const { return static_cast<int>(hub_->members.size()); }
  // 0: it has not come yet, and nobody has said who it will be.
  std::int64_t pid_of(int rank) const {
    const auto place = static_cast<std::size_t>(rank);
    return place < pids_.size() ? pids_[place] : hub_->member(rank).pid;
  }

  Error error(ErrorCode code, const std::string& text, int rank = -1) const {
    return Error(code, fmt::format("{} ({})", text, describe_options(options_)), group_, rank);
  }

  void enter() const {
    if (cause_) throw error(ErrorCode::aborted, fmt::format("broken before: {}", cause_->what()), cause_->rank());
  }
  void check_peer(int peer) const {
    if (peer < 0 || peer >= static_cast<int>(hub_->members.size()) || peer == rank_)
      throw error(ErrorCode::invalid_argument, fmt::format("no peer of rank {}: {}", rank_, peer), peer);
  }
  void check_ticket(Ticket ticket) const {
    if (self().open.count(ticket.id) == 0 && self().ended.count(ticket.id) == 0)
      throw error(ErrorCode::invalid_argument, fmt::format("ticket {} is not in use", ticket.id));
  }

  void count_post() {
    ++self().posts;
    if (!options_.closing || options_.closing->rank != rank_ || options_.closing->at_post != self().posts) return;
    close();
    cause_ = error(ErrorCode::io, "this rank's channel closes here, as the test wants", rank_);
    throw *cause_;
  }

  // When `peer` has what this rank says now.
  Clock::time_point arrival(int peer) {
    if (network_ != nullptr) return network_->arrival(pid_of(rank_), pid_of(peer) != 0 ? pid_of(peer) : pid_of(rank_));
    const Duration longest = std::max(options_.longest_delay, Duration::zero());
    if (longest == Duration::zero()) return Clock::now();
    return Clock::now() + Duration(std::uniform_int_distribution<Duration::rep>(0, longest.count())(hub_->random));
  }

  Duration next_arrival() const {
    const auto now = Clock::now();
    auto next = now + std::chrono::hours(1);
    const auto consider = [&](Clock::time_point arrives) {
      if (arrives > now) next = std::min(next, arrives);
    };
    for (const Message& message : self().inbox) consider(message.arrives);
    for (const Abort& abort : self().aborts) consider(abort.arrives);
    for (const auto closing : self().closings) consider(closing);
    return next - now;
  }

  // The peer of an operation that has ended, whose ticket is then free; throws when it never will end.
  std::optional<int> look(Ticket ticket) {
    // One look at the clock: by a later one, a message would neither have been delivered nor be under way.
    const auto now = Clock::now();
    for (int rank = 0; rank < size(); ++rank) {
      if (network_ == nullptr || rank == rank_) hub_->deliver(rank, now);
    }
    if (const auto done = self().ended.find(ticket.id); done != self().ended.end()) {
      const int peer = done->second;
      self().ended.erase(done);
      return peer;
    }
    if (cause_) throw *cause_;
    if (!self().mismatch.empty()) fail(error(ErrorCode::mismatch, self().mismatch));
    for (const auto& [arrives, by, why] : self().aborts) {
      if (arrives > now) continue;
      fail(error(why.code() == ErrorCode::peer_lost ? ErrorCode::peer_lost : ErrorCode::aborted,
                 fmt::format("rank {} ended the group: {}", by, why.what()), why.rank() >= 0 ? why.rank() : by));
    }
    const int peer = self().open.at(ticket.id);
    const int gone = who_closed(peer, now);
    if (gone >= 0 && !is_under_way(peer, now))
      fail(error(ErrorCode::peer_lost, fmt::format("rank {} closed its channel", gone), gone));
    return std::nullopt;
  }

  bool has_left(int peer, Clock::time_point now) const {
    return self().closings[static_cast<std::size_t>(peer)] <= now;
  }
  bool is_lost(int peer) const {
    return network_ != nullptr && pid_of(peer) != 0 && network_->is_lost(pid_of(rank_), pid_of(peer));
  }
  // From any: the first that is lost, or the last if all have left.
  int who_closed(int peer, Clock::time_point now) const {
    if (peer != kAnyPeer) return has_left(peer, now) || is_lost(peer) ? peer : -1;
    int gone = -1;
    bool have_all_left = true;
    for (int rank = 0; rank < size(); ++rank) {
      if (rank == rank_) continue;
      if (!has_left(rank, now)) {
        if (is_lost(rank)) return rank;
        have_all_left = false;
      }
      gone = rank;
    }
    return have_all_left ? gone : -1;
  }

  // Whether a message from `peer` has been sent and has not arrived by `now`.
  bool is_under_way(int peer, Clock::time_point now) const {
    const auto& inbox = self().inbox;
    return std::any_of(inbox.begin(), inbox.end(), [&](const Message& message) {
      const bool arrives = message.arrives > now && message.arrives != Clock::time_point::max();
      return arrives && (peer == kAnyPeer || peer == message.from);
    });
  }

  void close() {
    self().receives.clear();  // their memory goes
    if (std::exchange(self().closed, true)) return;
    for_others([&](Member& other, int rank) { other.closings[static_cast<std::size_t>(rank_)] = arrival(rank); });
    hub_->changed.notify_all();
  }
  // Nothing of this rank's memory is touched from now on.
  void break_off(const Error& cause) {
    self().receives.clear();
    if (cause_) return;
    cause_ = cause;
    for_others([&](Member& other, int rank) { other.aborts.push_back({arrival(rank), rank_, cause}); });
    hub_->changed.notify_all();
  }
  [[noreturn]] void fail(const Error& error) {
    break_off(error);
    throw error;
  }

  template <class Do>
  void for_others(Do act) {
    for (int rank = 0; rank < size(); ++rank) {
      if (rank != rank_) act(hub_->member(rank), rank);
    }
  }

  const std::string group_;
  const int rank_;
  const std::shared_ptr<Hub> hub_;  // of all ranks
  const MemoryOptions& options_;    // the factory's, which lives longer
  Network* const network_;          // null, or what decides when a message arrives
  std::vector<std::int64_t> pids_;  // by rank
  std::optional<Error> cause_;
};

class MemoryBackend final : public BackendFactory {
 public:
  explicit MemoryBackend(MemoryOptions options) : options_(std::move(options)) {}

  std::string_view name() const override { return options_.name; }
  std::optional<std::string> unavailable_reason() const override { return std::nullopt; }
  std::string describe(const ConnectRequest&) const override { return describe_options(options_); }

  std::unique_ptr<Channel> connect(const ConnectRequest& request, WaitContext& wait) override {
    for (const PeerInfo& peer : request.peers) {
      if (peer.pid != 0 && peer.pid != core::own_pid() && !options_.network)
        throw Error(ErrorCode::unavailable, fmt::format("rank {} is another process", peer.rank), request.group,
                    peer.rank);
    }
    const auto hub = find_hub(request);
    Lock lock(hub->mutex);
    enter(*hub, request.rank);
    const auto all_entered = [&] {
      return std::all_of(hub->members.begin(), hub->members.end(), [](const Member& one) { return one.entered; });
    };
    while (!all_entered()) {
      hub->changed.wait_for(lock, wait.slice());
      if (all_entered()) break;
      const int gone = who_is_gone(*hub, request);
      lock.unlock();
      if (gone >= 0)
        throw Error(ErrorCode::peer_lost, fmt::format("rank {} ended before it connected", gone), request.group, gone);
      wait.describe("all ranks to connect");
      wait.check();
      lock.lock();
    }
    return std::make_unique<MemoryChannel>(request, hub, options_);
  }

  std::unique_ptr<Channel> connect_at_once(const ConnectRequest& request) {
    const auto hub = find_hub(request);
    const Lock lock(hub->mutex);
    enter(*hub, request.rank);
    return std::make_unique<MemoryChannel>(request, hub, options_);
  }

 private:
  // Requires: the hub's mutex is held.
  static void enter(Hub& hub, int rank) {
    hub.member(rank).entered = true;
    hub.member(rank).pid = core::own_pid();
    hub.changed.notify_all();
  }

  // A rank that has not entered, and whose connection has ended.
  int who_is_gone(Hub& hub, const ConnectRequest& request) const {
    Network* const network = options_.network ? options_.network() : nullptr;
    for (const PeerInfo& peer : request.peers) {
      if (network == nullptr || peer.rank == request.rank || hub.member(peer.rank).entered) continue;
      if (network->is_lost(request.peers[static_cast<std::size_t>(request.rank)].pid, peer.pid)) return peer.rank;
    }
    return -1;
  }

  std::shared_ptr<Hub> find_hub(const ConnectRequest& request) {
    const std::lock_guard lock(mutex_);
    auto& known = hubs_[{std::string(request.group), request.token}];
    auto hub = known.lock();
    const auto rank = static_cast<std::size_t>(request.rank);
    // A group of that name and token which stands already is an earlier one.
    if (hub == nullptr || hub->is_taken[rank]) known = hub = std::make_shared<Hub>(request.size, options_.seed);
    hub->is_taken[rank] = true;
    return hub;
  }

  const MemoryOptions options_;
  std::mutex mutex_;  // guards hubs_, and their is_taken
  std::map<std::pair<std::string, std::uint64_t>, std::weak_ptr<Hub>> hubs_;
};

}  // namespace

std::unique_ptr<BackendFactory> make_memory_backend(MemoryOptions options) {
  return std::make_unique<MemoryBackend>(std::move(options));
}

std::unique_ptr<Channel> connect_at_once(BackendFactory& memory, const ConnectRequest& request) {
  return static_cast<MemoryBackend&>(memory).connect_at_once(request);
}

void register_memory_backend(const MemoryOptions& options) {
  static std::mutex one_at_a_time;  // ranks that are threads come here at once
  const std::lock_guard lock(one_at_a_time);
  if (find_backend(options.name) == nullptr) register_backend(make_memory_backend(options));
}

}  // namespace col::test

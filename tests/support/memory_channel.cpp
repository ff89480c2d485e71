#include "support/memory_channel.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
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

namespace col::test {
namespace {

using Clock = std::chrono::steady_clock;

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

struct Member {
  std::list<Message> inbox;            // in the order of arrival
  std::list<Receive> receives;         // in the order of posting
  std::map<std::uint64_t, int> ended;  // tickets of operations that have ended, and with whom
  std::map<std::uint64_t, int> open;   // tickets of those that have not, and whom they wait for
  std::string mismatch;                // what this rank has to throw; empty: nothing
  int posts = 0;
  bool entered = false;
  bool closed = false;
};

// All that the ranks of one group share. Requires: `mutex` is held, wherever anything else is touched.
struct Hub {
  Hub(int size, std::uint64_t seed) : members(static_cast<std::size_t>(size)), random(seed) {}

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Member> members;
  std::mt19937_64 random;
  std::uint64_t tickets = 0;
  std::optional<std::pair<int, Error>> aborted;  // by whom, why

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

class MemoryChannel final : public Channel {
 public:
  MemoryChannel(std::string group, int rank, std::shared_ptr<Hub> hub, const MemoryOptions& options)
      : group_(std::move(group)), rank_(rank), hub_(std::move(hub)), options_(options) {}
  ~MemoryChannel() override {
    const std::lock_guard lock(hub_->mutex);
    close();
  }

  Ticket post_send(int peer, std::uint64_t slot, ConstTensorView data) override {
    const std::lock_guard lock(hub_->mutex);
    enter();
    check_peer(peer);
    count_post();
    Message message;
    message.from = rank_;
    message.slot = slot;
    message.arrives = Clock::now() + delay();
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
    const std::lock_guard lock(hub_->mutex);
    enter();
    if (peer != kAnyPeer || hub_->members.size() == 1) check_peer(peer);
    count_post();
    const Ticket ticket{++hub_->tickets};
    self().receives.push_back({peer, slot, data, ticket.id});
    self().open.emplace(ticket.id, peer);
    return ticket;
  }

  std::optional<int> test(Ticket ticket) override {
    const std::lock_guard lock(hub_->mutex);
    enter();
    check_ticket(ticket);
    return look(ticket);
  }

  int wait(Ticket ticket, WaitContext& wait) override {
    std::unique_lock lock(hub_->mutex);
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

  std::span<const NativeEntry> native_entries() const override { return {}; }
  Ticket start_native(const Request&, WaitContext&) override {
    const std::lock_guard lock(hub_->mutex);
    fail(error(ErrorCode::internal, "this backend has no collectives of its own"));
  }

  void abort(const Error& cause) noexcept override {
    const std::lock_guard lock(hub_->mutex);
    break_off(cause);
  }

 private:
  Member& self() const { return hub_->member(rank_); }

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

  Duration delay() {
    if (options_.longest_delay <= Duration::zero()) return Duration::zero();
    return Duration(std::uniform_int_distribution<Duration::rep>(0, options_.longest_delay.count())(hub_->random));
  }

  Duration next_arrival() const {
    const auto now = Clock::now();
    for (const Message& message : self().inbox) {
      if (message.arrives > now) return message.arrives - now;
    }
    return std::chrono::hours(1);
  }

  // The peer of an operation that has ended, whose ticket is then free; throws when it never will end.
  std::optional<int> look(Ticket ticket) {
    // One look at the clock: by a later one, a message would neither have been delivered nor be under way.
    const auto now = Clock::now();
    for (int rank = 0; rank < static_cast<int>(hub_->members.size()); ++rank) hub_->deliver(rank, now);
    if (const auto done = self().ended.find(ticket.id); done != self().ended.end()) {
      const int peer = done->second;
      self().ended.erase(done);
      return peer;
    }
    if (cause_) throw *cause_;
    if (!self().mismatch.empty()) fail(error(ErrorCode::mismatch, self().mismatch));
    if (hub_->aborted) {
      const auto& [by, why] = *hub_->aborted;
      fail(error(why.code() == ErrorCode::peer_lost ? ErrorCode::peer_lost : ErrorCode::aborted,
                 fmt::format("rank {} ended the group: {}", by, why.what()), why.rank() >= 0 ? why.rank() : by));
    }
    const int peer = self().open.at(ticket.id);
    const int gone = who_closed(peer);
    if (gone >= 0 && !is_under_way(peer, now))
      fail(error(ErrorCode::peer_lost, fmt::format("rank {} closed its channel", gone), gone));
    return std::nullopt;
  }

  int who_closed(int peer) const {
    if (peer != kAnyPeer) return hub_->member(peer).closed ? peer : -1;
    int gone = -1;
    for (int rank = 0; rank < static_cast<int>(hub_->members.size()); ++rank) {
      if (rank == rank_) continue;
      if (!hub_->member(rank).closed) return -1;
      gone = rank;
    }
    return gone;
  }

  // Whether a message from `peer` has been sent and has not arrived by `now`.
  bool is_under_way(int peer, Clock::time_point now) const {
    const auto& inbox = self().inbox;
    return std::any_of(inbox.begin(), inbox.end(), [&](const Message& message) {
      return message.arrives > now && (peer == kAnyPeer || peer == message.from);
    });
  }

  void close() {
    self().closed = true;
    self().receives.clear();  // their memory goes
    hub_->changed.notify_all();
  }
  // Nothing of this rank's memory is touched from now on.
  void break_off(const Error& cause) {
    if (!cause_) cause_ = cause;
    if (!hub_->aborted) hub_->aborted.emplace(rank_, cause);
    self().receives.clear();
    hub_->changed.notify_all();
  }
  [[noreturn]] void fail(const Error& error) {
    break_off(error);
    throw error;
  }

  const std::string group_;
  const int rank_;
  const std::shared_ptr<Hub> hub_;  // of all ranks
  const MemoryOptions& options_;    // the factory's, which lives longer
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
      if (peer.pid != 0 && peer.pid != ::getpid())
        throw Error(ErrorCode::unavailable, fmt::format("rank {} is another process", peer.rank), request.group,
                    peer.rank);
    }
    const auto hub = find_hub(request);
    std::unique_lock lock(hub->mutex);
    hub->member(request.rank).entered = true;
    hub->changed.notify_all();
    const auto all_entered = [&] {
      return std::all_of(hub->members.begin(), hub->members.end(), [](const Member& one) { return one.entered; });
    };
    while (!all_entered()) {
      hub->changed.wait_for(lock, wait.slice());
      if (all_entered()) break;
      lock.unlock();
      wait.describe("all ranks to connect");
      wait.check();
      lock.lock();
    }
    return std::make_unique<MemoryChannel>(std::string(request.group), request.rank, hub, options_);
  }

 private:
  std::shared_ptr<Hub> find_hub(const ConnectRequest& request) {
    const std::lock_guard lock(mutex_);
    auto& known = hubs_[{std::string(request.group), request.token}];
    auto hub = known.lock();
    const auto is_taken = [&] {
      const std::lock_guard hub_lock(hub->mutex);
      return hub->member(request.rank).entered;
    };
    // A group of that name and token which stands already is an earlier one.
    if (hub == nullptr || is_taken()) known = hub = std::make_shared<Hub>(request.size, options_.seed);
    return hub;
  }

  const MemoryOptions options_;
  std::mutex mutex_;
  std::map<std::pair<std::string, std::uint64_t>, std::weak_ptr<Hub>> hubs_;
};

}  // namespace

std::unique_ptr<BackendFactory> make_memory_backend(MemoryOptions options) {
  return std::make_unique<MemoryBackend>(std::move(options));
}

void register_memory_backend(const MemoryOptions& options) {
  static std::mutex one_at_a_time;  // ranks that are threads come here at once
  const std::lock_guard lock(one_at_a_time);
  if (find_backend(options.name) == nullptr) register_backend(make_memory_backend(options));
}

}  // namespace col::test

#include "backend/gloo/transport.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <gloo/common/error.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <col/proof.hpp>

#include "backend/far_wait.hpp"
#include "backend/gloo/no_pair.hpp"
#include "core/blocked_signal.hpp"
#include "core/joined.hpp"

namespace col::gloo_backend {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kEventsAtOnce = 64;
// How long this rank waits before it looks for another way to the news: most often, all ranks are about to leave.
constexpr auto kBeforeNewParent = 100ms;
// How long a rank that leaves waits for what it has written to arrive.
constexpr auto kMostLinger = 1s;

bool has_arrived(const Connection& connection) {
  int bytes = 0;
  return !connection.has_more_to_write() && (::ioctl(connection.socket(), SIOCOUTQ, &bytes) != 0 || bytes == 0);
}

}  // namespace

GuardedContext::GuardedContext(const Interface& interface, Membership member)
    : ::gloo::transport::Context(member.rank, member.kin.size()),
      credentials_(member.token, member.rank, make_nonce().substr(0, Address::kSecretBytes)),
      interface_(interface),
      kin_(std::move(member.kin)),
      host_names_(std::move(member.host_names)),
      heartbeat_(member.heartbeat),
      is_crowded_(member.is_crowded),
      lobby_(*this, poller_, credentials_, size, interface),
      peers_(static_cast<std::size_t>(size)),
      parent_(kin_.parent_of(rank)) {
  for (int r = 0; r < size; ++r) {
    peer_of(r).rank = r;
    if (r != rank) createPair(r);
  }
  (void)make_proof({}, ProofRole::server, {});  // here, where it may fail, and not on the event thread
}

void GuardedContext::start() {
  const core::AllSignalsBlocked for_the_new_thread;
  thread_ = core::Thread([this] { serve(); });
}

GuardedContext::~GuardedContext() {
  {
    const std::lock_guard lock(mutex_);
    standby_.leave();
  }
  comes_back_.notify_all();
  poller_.wake();
  if (thread_.joinable()) thread_.join();
  lobby_.close();
  for (Peer& peer : peers_) hang_up(peer);
}

std::unique_ptr<::gloo::transport::Pair>& GuardedContext::createPair(int peer) {
  auto& pair = pairs_.at(static_cast<std::size_t>(peer));
  pair = std::make_unique<NoPair>();
  return pair;
}

Buffer GuardedContext::createUnboundBuffer(void* data, std::size_t bytes) {
  return std::make_unique<GuardedBuffer>(*this, data, bytes);
}

void GuardedContext::set_address(int peer, Address address) {
  const std::lock_guard lock(mutex_);
  peer_of(peer).address = std::move(address);
}

void GuardedContext::look_around(const char* verb, const std::vector<int>& ranks) {
  if (broken()) throw cause_.get();
  if (extra_check_) extra_check_(ranks);
  if (wait_ == nullptr) throw Error(ErrorCode::internal, "gloo: a wait without a WaitContext; please report this");
  wait_->describe(fmt::format("{} {} {}", verb, ranks.size() == 1 ? "rank" : "ranks", core::joined(ranks, ", ")));
  wait_->waiting(-1, ranks.size() == 1 ? ranks.front() : -1);
  wait_->check();
}

void GuardedContext::require_descriptors() const {
  if (lobby_.is_starved())
    throw Error(ErrorCode::resource,
                "gloo: out of file descriptors for a connection that another rank makes; raise the limit of open files "
                "(ulimit -n)");
}

void GuardedContext::check(const char* verb, const std::vector<int>& ranks) {
  look_around(verb, ranks);
  const std::lock_guard lock(mutex_);
  require_descriptors();
  for (const int r : ranks) require_connection(peer_of(r));
  flush();
}

// ---- Threads

// A thread that is in Poller::wait() gets the events alone if it came last (net/poller.hpp). So the event thread sees
// no event while a call sleeps there. It does where a call only looks, or none is made.
void GuardedContext::serve() {
  std::array<epoll_event, kEventsAtOnce> events;
  std::unique_lock lock(mutex_);
  while (!standby_.is_over()) {
    const Duration timeout = unfinished_.empty() ? Duration::max() : Duration::zero();
    lock.unlock();
    const int count = poller_.wait(events, timeout);
    lock.lock();
    const bool long_message_comes = handle(std::span(events).first(static_cast<std::size_t>(count)));
    flush();
    if (ring_) ring_();
    if (standby_.call_waits() && (has_news_ || broken())) poller_.wake();
    standby_.on_served(long_message_comes);
    stand_aside(lock);
  }
}

// This thread stays away as long as a call sleeps, or it would be the one that came last; and as long as calls follow
// one another, as each of them serves the connections.
void GuardedContext::stand_aside(std::unique_lock<core::Mutex>& lock) {
  while (standby_.is_aside() && unfinished_.empty()) {
    comes_back_.wait_for(lock, standby_.time(), [this] { return !standby_.stays_aside(); });
    standby_.on_stood();
  }
  standby_.serve();
}

bool GuardedContext::turn(std::unique_lock<core::Mutex>& lock, Duration timeout) {
  std::array<epoll_event, kEventsAtOnce> events;
  has_news_ = false;
  flush();  // which may end a send
  const bool is_busy = !unfinished_.empty() || has_news_;
  if (is_busy) timeout = Duration::zero();
  standby_.begin_call(timeout > Duration::zero());
  lock.unlock();
  const int count = poller_.wait(events, timeout);
  lock.lock();
  if (standby_.end_call()) comes_back_.notify_one();
  handle(std::span(events).first(static_cast<std::size_t>(count)));
  flush();
  return is_busy || count > 0;
}

void GuardedContext::hand_on() noexcept {
  for (const int r : std::exchange(unfinished_, {})) {
    if (Peer& peer = peer_of(r); peer.is_open())
      poller_.rewatch(peer.connection->socket(), event_id(Target::connection, static_cast<std::uint32_t>(r)));
  }
}

bool GuardedContext::handle(std::span<const epoll_event> events) {
  if (broken()) return false;
  bool moves_much = false;
  for (const int r : std::exchange(unfinished_, {})) moves_much |= move_on(peer_of(r), false);
  for (const epoll_event& event : events) {
    if (event.data.u64 == net::Poller::kWoken) continue;
    if (event.data.u64 == net::Poller::kAlarm) {
      do_what_is_due();
      continue;
    }
    const std::uint32_t number = number_of(event.data.u64);
    switch (target_of(event.data.u64)) {
      case Target::listener:
        lobby_.hear_listener();
        break;
      case Target::caller:
        lobby_.hear_caller(number);
        break;
      case Target::call:
        lobby_.hear_call(static_cast<int>(number));
        break;
      case Target::connection:
        moves_much |=
            move_on(peer_of(static_cast<int>(number)), (event.events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0);
        break;
    }
  }
  return moves_much;
}

void GuardedContext::do_what_is_due() {
  const auto now = Lobby::Clock::now();
  if (look_for_parent_at_ && *look_for_parent_at_ <= now) look_for_parent();
  if (look_at_hosts_at_ && *look_at_hosts_at_ <= now) look_at_hosts(now);
  auto next = lobby_.do_what_is_due(now);
  for (const auto& other : {look_for_parent_at_, look_at_hosts_at_}) {
    if (other && (!next || *other < *next)) next = other;
  }
  if (next) poller_.set_alarm(*next - now);
}

// ---- Connections

bool GuardedContext::move_on(Peer& peer, bool has_ended) {
  if (!peer.is_open()) return false;
  bool moves_much = false;
  try {
    const std::uint64_t before = peer.connection->bytes_read();
    if (peer.connection->read(has_ended)) unfinished_.push_back(peer.rank);
    moves_much = peer.is_open() && peer.connection->bytes_read() - before > backend::kMostPolledBytes;
  } catch (const std::exception&) {
    close(peer, std::current_exception());
    return false;
  }
  if (peer.is_open() && peer.connection->is_stuck()) write(peer);
  return moves_much;
}

void GuardedContext::write(Peer& peer) {
  try {
    if (peer.connection->write()) unfinished_.push_back(peer.rank);
  } catch (const std::exception&) {
    const auto failure = std::current_exception();
    // What the other side has said before, a goodbye above all, is still to be read.
    try {
      while (peer.connection->read(true)) {
      }
    } catch (const std::exception&) {
    }
    close(peer, failure);
  }
}

Connection& GuardedContext::connection_of(Peer& peer) {
  FrameSink& sink = *this;
  if (peer.connection == nullptr) peer.connection = std::make_unique<Connection>(peer.rank, sink);
  if (!std::exchange(peer.is_dirty, true)) dirty_.push_back(peer.rank);
  return *peer.connection;
}

void GuardedContext::put(Peer& peer, const Frame& frame, OperationPtr operation) {
  if (operation != nullptr) operation->moves = true;
  connection_of(peer).put(frame, std::move(operation));
}

void GuardedContext::flush() {
  while (!dirty_.empty()) {
    Peer& peer = peer_of(dirty_.back());
    dirty_.pop_back();
    peer.is_dirty = false;
    if (peer.is_open()) write(peer);
  }
}

void GuardedContext::require_connection(Peer& peer) {
  if (!broken() && peer.address && wants(peer.rank)) lobby_.call(peer.rank, *peer.address);
}

void GuardedContext::connect_to(std::span<const int> peers) {
  std::unique_lock lock(mutex_);
  for (;;) {
    std::vector<int> missing;
    for (const int r : peers) {
      Peer& peer = peer_of(r);
      if (peer.has_met || peer.has_left) continue;
      if (peer.failure != nullptr) std::rethrow_exception(peer.failure);
      if (r < rank) require_connection(peer);
      missing.push_back(r);
    }
    if (missing.empty()) break;
    require_descriptors();
    turn(lock, slice());
    lock.unlock();
    try {
      look_around("connect to", missing);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::timeout || error.rank() >= 0) throw;
      throw Error(error.code(), error.message(), {}, missing.front());
    }
    lock.lock();
  }
  hand_on();
}

int GuardedContext::first_lost(std::span<const int> peers) {
  const std::lock_guard lock(mutex_);
  const auto lost = std::find_if(peers.begin(), peers.end(), [this](int r) { return peer_of(r).is_said_lost; });
  return lost == peers.end() ? -1 : *lost;
}

bool GuardedContext::wants(int peer) const {
  const Peer& wanted = peers_.at(static_cast<std::size_t>(peer));
  return wanted.failure == nullptr && !wanted.is_open();
}

void GuardedContext::connected(int rank_of_peer, core::UniqueFd socket) {
  Peer& peer = peer_of(rank_of_peer);
  if (peer.failure != nullptr) return poller_.unwatch(socket.get());
  connection_of(peer).open(std::move(socket));
  peer.has_met = true;
  if (is_far(rank_of_peer)) {
    begin_to_look();
    say_that_it_lives(peer);  // before all else: a host that freezes behind its first call is expected to speak
  }
  // It may be the only way by which the peer gets the news.
  for (const Peer& other : peers_) {
    if (other.has_left) put(peer, {.kind = Kind::left, .rank = other.rank});
    if (other.is_said_lost) put(peer, {.kind = Kind::lost, .rank = other.rank});
  }
}

void GuardedContext::unreachable(int rank_of_peer, std::exception_ptr why) {
  Peer& peer = peer_of(rank_of_peer);
  peer.is_unreachable = true;
  close(peer, why);
}

// The reads of the other side end when it has read what was written.
void GuardedContext::hang_up(Peer& peer) noexcept {
  if (peer.is_open()) {
    poller_.unwatch(peer.connection->socket());
    // Not only closed: a process that was forked meanwhile may have a copy of it.
    ::shutdown(peer.connection->socket(), SHUT_RDWR);
  }
  peer.connection.reset();
}

void GuardedContext::close(Peer& peer, const std::exception_ptr& why) {
  if (peer.failure != nullptr) return hang_up(peer);
  peer.failure = why;
  ++gone_;
  has_news_ = true;
  hang_up(peer);
  peer.lines.clear();
  inbox_.forget_announced(peer.rank);
  for (GuardedBuffer* const buffer : buffers_) buffer->fail_if_with(peer.rank, why);
  const bool is_lost = !peer.has_left && !peer.is_unreachable;
  if (is_lost && !std::exchange(peer.is_said_lost, true)) tell({.kind = Kind::lost, .rank = peer.rank}, -1);
  if (peer.rank != parent_ || look_for_parent_at_) return;
  look_for_parent_at_ = Lobby::Clock::now() + kBeforeNewParent;
  poller_.set_alarm(0ms);
}

// ---- Who has gone

void GuardedContext::tell(const Frame& news, int except) {
  for (Peer& peer : peers_) {
    if (peer.is_open() && peer.rank != except) put(peer, news);
  }
}

void GuardedContext::hear(const Frame& news, int from) {
  const bool has_left = news.kind == Kind::left;
  if (news.rank < 0 || news.rank >= size || news.rank == rank) return;
  if (news.kind == Kind::host_lost) return lose_host(news.rank, static_cast<HostFault>(news.bytes), from);
  Peer& peer = peer_of(news.rank);
  if (std::exchange(has_left ? peer.has_left : peer.is_said_lost, true)) return;
  tell(news, from);
  has_news_ = true;
  // A connection tells itself when it ends, behind all that was sent. Who has accepted this rank's call may have sent
  // and gone before the call knows.
  if (peer.is_open() || lobby_.is_calling(news.rank)) return;
  close(peer, io_failure(has_left ? std::string("it has left the group")
                                  : fmt::format("rank {} has lost its connection to it", from)));
}

bool GuardedContext::has_gone(int other) const {
  const Peer& peer = peers_.at(static_cast<std::size_t>(other));
  return peer.failure != nullptr || peer.has_left;
}

void GuardedContext::look_for_parent() {
  look_for_parent_at_.reset();
  parent_ = kin_.parent_of(rank, [this](int other) { return has_gone(other); });
  if (parent_ >= 0) require_connection(peer_of(parent_));
}

GuardedContext::Gone GuardedContext::gone_locked(std::span<const int> sources) const {
  Gone gone;
  if (gone_ == 0) return gone;
  std::size_t count = 0;
  for (const int source : sources) {
    const Peer& peer = peers_.at(static_cast<std::size_t>(source));
    if (peer.failure == nullptr) continue;
    gone.failure = peer.failure;
    gone.is_lost = peer.is_said_lost;
    if (gone.is_lost) return gone;
    ++count;
  }
  gone.are_all = count == sources.size();
  return gone;
}

std::exception_ptr GuardedContext::why_lost_locked(std::span<const int> sources) const {
  const Gone gone = gone_locked(sources);
  return gone.is_lost || gone.are_all ? gone.failure : nullptr;
}

backend::SideOps::Probed GuardedContext::probe(std::span<const int> sources, std::uint64_t line) {
  const std::lock_guard lock(mutex_);
  if (broken()) throw cause_.get();
  if (const Arrival* const message = inbox_.message_for(line, sources)) return {.peer = message->peer};
  const Gone gone = gone_locked(sources);
  if (gone.is_lost) std::rethrow_exception(gone.failure);
  return {.all_left = gone.are_all};
}

void GuardedContext::on_change(std::function<void()> ring) {
  const std::lock_guard lock(mutex_);
  ring_ = std::move(ring);
}

void GuardedContext::progress() {
  std::unique_lock lock(mutex_);
  if (broken()) throw cause_.get();
  turn(lock, Duration::zero());
  hand_on();
  if (mismatch_ != nullptr) std::rethrow_exception(mismatch_);
}

// The event thread takes over, and what comes from now on is an event for it.
void GuardedContext::may_sleep() {
  const std::lock_guard lock(mutex_);
  flush();
  if (mismatch_ != nullptr) std::rethrow_exception(mismatch_);
  if (standby_.sleep()) comes_back_.notify_one();
}

std::exception_ptr GuardedContext::why_lost(const std::vector<int>& sources) {
  const std::lock_guard lock(mutex_);
  return why_lost_locked(sources);
}

int GuardedContext::rank_that_failed_with(const std::exception_ptr& failure) {
  const std::lock_guard lock(mutex_);
  for (const Peer& peer : peers_) {
    if (failure != nullptr && peer.failure == failure) return peer.rank;
  }
  return -1;
}

int GuardedContext::connections() {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(std::count_if(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.is_open(); }));
}

// ---- The end

void GuardedContext::break_off(const Error& cause) noexcept {
  cause_.set(cause);
  const std::lock_guard lock(mutex_);
  lobby_.close();
  for (Peer& peer : peers_) hang_up(peer);
  unfinished_.clear();  // nobody would, and the event thread would look for more without a pause
  has_news_ = true;
  poller_.wake();
}

void GuardedContext::say_goodbye() noexcept {
  try {
    std::unique_lock lock(mutex_);
    lobby_.close();
    tell({.kind = Kind::left, .rank = rank}, -1);
    flush();
    // A connection that is closed while something is unread in it forgets what it has not delivered yet.
    const auto end = Lobby::Clock::now() + kMostLinger;
    const auto all_arrived = [&] {
      return std::all_of(peers_.begin(), peers_.end(),
                         [](const Peer& peer) { return !peer.is_open() || has_arrived(*peer.connection); });
    };
    while (!broken() && !all_arrived() && Lobby::Clock::now() < end) turn(lock, 1ms);
  } catch (const std::exception&) {
  }
}

}  // namespace col::gloo_backend

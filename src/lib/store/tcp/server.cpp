// The sockets of a TCP store's server: one thread, one epoll loop. What they say is the engine's business.
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/error.hpp>
#include <col/proof.hpp>
#include <col/store.hpp>

#include "core/blocked_signal.hpp"
#include "core/clock/lock.hpp"
#include "core/log.hpp"
#include "core/unique_fd.hpp"
#include "net/address.hpp"
#include "net/connect.hpp"
#include "net/listener.hpp"
#include "net/poller.hpp"
#include "net/stream.hpp"
#include "store/tcp/engine.hpp"
#include "store/tcp/handshake.hpp"
#include "store/tcp/protocol.hpp"
#include "store/tcp/socket.hpp"
#include "store/tcp/token.hpp"

namespace col {
namespace {

using namespace store::tcp;
using namespace std::chrono_literals;

constexpr std::size_t kReadChunk = std::size_t{64} << 10;
constexpr int kEventsAtOnce = 256;
constexpr int kAcceptsAtOnce = 64;
constexpr Duration kSweepInterval = 500ms;
constexpr Duration kAcceptPause = 100ms;
// Those of sessions count from 1.
constexpr std::uint64_t kListenerId = 0;

[[noreturn]] void throw_errno(const char* action) {
  throw Error(ErrorCode::resource, fmt::format("cannot {} for the store's server ({}); raise the limits of open files "
                                               "(ulimit -n) and threads (ulimit -u)",
                                               action, std::generic_category().message(errno)));
}

net::Listener checked_listen(const StoreServerSpec& spec) {
  check_token(spec.token);
  const auto refuse = [](std::string_view what) {
    throw Error(ErrorCode::invalid_argument, fmt::format("a store server with {}; correct its StoreServerSpec", what));
  };
  if (spec.port < 0 || spec.port > 65535) refuse(fmt::format("port {}, which is not from 0 to 65535", spec.port));
  if (spec.max_connections == 0) refuse("no room for connections");
  if (spec.max_value_bytes == 0 || spec.max_value_bytes > StoreServerSpec::kMostValueBytes)
    refuse(fmt::format("max_value_bytes not from 1 to {}", StoreServerSpec::kMostValueBytes));
  if (spec.handshake_timeout <= Duration::zero() || spec.stall_timeout <= Duration::zero())
    refuse("a timeout that is not above zero");
  check_job(spec.job);
  (void)make_proof({}, ProofRole::server, {});  // that it cannot be made is said now, not to the first client
  return listen_on(spec.host, spec.port);
}

core::UniqueFd open_spare() noexcept {
  return core::UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

}  // namespace

class StoreServer::Impl {
 public:
  explicit Impl(const StoreServerSpec& spec);
  ~Impl() { stop(); }

  int port() const noexcept { return listener_.port; }
  std::string url() const { return url_of({host_, listener_.port}); }
  std::size_t connections() const noexcept { return connections_.load(std::memory_order_relaxed); }
  void stop() noexcept;
  // In a forked child there is no thread to end.
  bool is_of_another_process() const noexcept { return owner_ != ::getpid(); }

 private:
  struct Client {
    core::UniqueFd fd;
    Session* session = nullptr;
    bool wants_to_write = false;
    bool is_silent = true;  // it has sent nothing
  };

  void start_thread();
  void run() noexcept;
  void turn();
  Duration sleep() const noexcept;
  void accept_all();
  bool accept_one(int listener);
  void accept_beyond_limit(int listener);
  void pause_accepting() noexcept;
  void add_client(core::UniqueFd fd);
  void read_from(Client& client);
  void flush_changed();
  bool flush(Client& client);
  void watch(Client& client, bool wants_to_write);
  void drop(SessionId id) noexcept;
  void hung_up(Client& client) noexcept;
  void forget(SessionId id) noexcept;  // the same, without a word
  void say_stranger(int fd) noexcept;
  void set_accepting(bool accepting) noexcept;

  const std::size_t max_connections_;
  Engine engine_;
  net::Listener listener_;
  const std::string host_;  // as others find it
  net::Poller poller_{&throw_errno};
  core::UniqueFd spare_;  // given up for a moment to turn a client away when descriptors run out
  std::unordered_map<SessionId, Client> clients_;
  std::atomic<std::size_t> connections_{0};  // clients_.size() for other threads; relaxed: nothing else is read by it
  std::vector<Session*> changed_;
  Time now_{};
  Time next_sweep_{};
  Time accept_again_{};
  bool sweeps_ = false;
  bool accepting_ = true;
  bool has_said_stranger_ = false;
  pid_t owner_;
  core::Thread thread_;
};

StoreServer::Impl::Impl(const StoreServerSpec& spec)
    : max_connections_(spec.max_connections),
      engine_({.max_value_bytes = spec.max_value_bytes,
               .max_total_bytes = spec.max_total_bytes,
               .handshake_timeout = spec.handshake_timeout,
               .stall_timeout = spec.stall_timeout},
              spec.token, spec.job),
      listener_(checked_listen(spec)),
      host_(net::host_for_others(spec.host)),
      spare_(open_spare()),
      owner_(::getpid()) {
  for (const core::UniqueFd& socket : listener_.sockets) poller_.watch(socket.get(), kListenerId, EPOLLIN);
  start_thread();
}

void StoreServer::Impl::start_thread() {
  const core::AllSignalsBlocked for_the_new_thread;  // the program's signals are for its own threads
  try {
    thread_ = core::Thread([this] { run(); });
  } catch (const std::system_error& error) {
    errno = error.code().value();
    throw_errno("start a thread");
  }
}

void StoreServer::Impl::stop() noexcept {
  if (!thread_.joinable()) return;
  poller_.wake();
  thread_.join();
  has_said_stranger_ = true;  // those who are still here may be of this job
  // Not only closed: a forked child may hold them open.
  for (const core::UniqueFd& socket : listener_.sockets) ::shutdown(socket.get(), SHUT_RDWR);
  listener_.sockets.clear();
  while (!clients_.empty()) drop(clients_.begin()->first);
}

void StoreServer::Impl::run() noexcept {
  ::pthread_setname_np(::pthread_self(), "col-store");
  std::array<epoll_event, kEventsAtOnce> events{};
  while (true) {
    const int count = poller_.wait(events, sleep());
    now_ = core::Clock::now();
    for (int i = 0; i < count; ++i) {
      const std::uint64_t id = events[static_cast<std::size_t>(i)].data.u64;
      if (id == net::Poller::kWoken) return;
      try {
        if (id == kListenerId) {
          accept_all();
        } else if (const auto client = clients_.find(id); client != clients_.end()) {
          // Errors and ends of streams show when it is read.
          if (flush(client->second)) read_from(client->second);
        }
      } catch (const std::exception& error) {  // memory ran out: this client goes, the others stay
        core::log::warn("store server: {}", error.what());
        if (id != kListenerId) drop(id);
      }
    }
    try {
      turn();
    } catch (const std::exception& error) {
      core::log::warn("store server: {}", error.what());
    }
  }
}

// What is to be done after any events.
void StoreServer::Impl::turn() {
  flush_changed();
  if (!accepting_ && now_ >= accept_again_) {
    if (!spare_) spare_ = open_spare();
    set_accepting(true);
  }
  if (!sweeps_ || now_ < next_sweep_) return;
  sweeps_ = engine_.expire(now_);
  next_sweep_ = now_ + kSweepInterval;
  flush_changed();
}

Duration StoreServer::Impl::sleep() const noexcept {
  Time until = Time::max();
  if (sweeps_) until = next_sweep_;
  if (!accepting_) until = std::min(until, accept_again_);
  if (until == Time::max()) return Duration::max();  // the stop event ends it
  return until - core::Clock::now();
}

void StoreServer::Impl::accept_all() {
  for (const core::UniqueFd& socket : listener_.sockets) {
    for (int i = 0; i < kAcceptsAtOnce && accept_one(socket.get()); ++i) {
    }
  }
}

bool StoreServer::Impl::accept_one(int listener) {
  if (!engine_.make_room(now_)) {
    pause_accepting();
    return false;
  }
  core::UniqueFd fd = net::accept(listener);
  if (fd) {
    if (clients_.size() >= max_connections_) {
      (void)net::send(fd.get(), kFullGreeting);
    } else {
      add_client(std::move(fd));
    }
    return true;
  }
  if (errno == EMFILE || errno == ENFILE) {
    engine_.end_old_stranger(now_) ? pause_accepting() : accept_beyond_limit(listener);
  } else if (errno == ENOBUFS || errno == ENOMEM) {
    pause_accepting();
  }
  return false;
}

// Descriptors have run out. The next client gets an error, so that it does not wait while epoll reports it again and
// again.
void StoreServer::Impl::accept_beyond_limit(int listener) {
  spare_.reset();
  const core::UniqueFd fd = net::accept(listener);
  if (fd) (void)net::send(fd.get(), kFullGreeting);
  pause_accepting();
}

void StoreServer::Impl::pause_accepting() noexcept {
  accept_again_ = now_ + kAcceptPause;
  set_accepting(false);
}

void StoreServer::Impl::set_accepting(bool accepting) noexcept {
  for (const core::UniqueFd& socket : listener_.sockets)
    if (!poller_.rewatch(socket.get(), kListenerId, accepting ? std::uint32_t{EPOLLIN} : 0)) return;
  accepting_ = accepting;
}

void StoreServer::Impl::add_client(core::UniqueFd fd) {
  net::set_no_delay(fd.get());
  net::set_keep_alive(fd.get());
  Session& session = engine_.open(now_);
  try {
    poller_.watch(fd.get(), session.id(), EPOLLIN);
    clients_.emplace(session.id(), Client{.fd = std::move(fd), .session = &session});
  } catch (...) {
    engine_.close(session);
    throw;
  }
  connections_.store(clients_.size(), std::memory_order_relaxed);
  sweeps_ = true;
}

void StoreServer::Impl::read_from(Client& client) {
  std::array<char, kReadChunk> chunk;
  const net::Moved moved = net::receive(client.fd.get(), chunk);
  if (moved.bytes > 0) {
    client.is_silent = false;
    engine_.receive(*client.session, {chunk.data(), moved.bytes}, now_);
    sweeps_ = true;
  } else if (moved.has_ended) {
    hung_up(client);
  }
}

void StoreServer::Impl::flush_changed() {
  engine_.take_changed(changed_);
  for (Session* const session : changed_) {
    const SessionId id = session->id();
    try {
      flush(clients_.at(id));
    } catch (const std::exception& error) {
      core::log::warn("store server: {}", error.what());
      drop(id);
    }
  }
}

// Sends what the kernel takes. False when the client was dropped.
bool StoreServer::Impl::flush(Client& client) {
  Session& session = *client.session;
  while (!session.ended() && !session.output().empty()) {
    const net::Moved moved = net::send(client.fd.get(), session.output());
    if (moved.has_ended) {
      hung_up(client);
      return false;
    }
    if (moved.bytes == 0) {
      sweeps_ = true;
      watch(client, true);
      return true;
    }
    engine_.sent(session, moved.bytes, now_);
  }
  if (session.ended()) {
    drop(session.id());
    return false;
  }
  watch(client, false);
  return true;
}

void StoreServer::Impl::watch(Client& client, bool wants_to_write) {
  if (client.wants_to_write == wants_to_write) return;
  const std::uint32_t events = wants_to_write ? EPOLLIN | EPOLLOUT : EPOLLIN;
  if (!poller_.rewatch(client.fd.get(), client.session->id(), events)) throw_errno("watch a connection");
  client.wants_to_write = wants_to_write;
}

void StoreServer::Impl::drop(SessionId id) noexcept {
  const auto client = clients_.find(id);
  if (client == clients_.end()) return;
  if (!client->second.session->proven()) say_stranger(client->second.fd.get());
  forget(id);
}

// One that has sent nothing looked whether the port answers, as health checks do.
void StoreServer::Impl::hung_up(Client& client) noexcept {
  const SessionId id = client.session->id();
  client.is_silent ? forget(id) : drop(id);
}

void StoreServer::Impl::forget(SessionId id) noexcept {
  const auto client = clients_.find(id);
  if (client == clients_.end()) return;
  // In words: a child that was forked meanwhile shares the socket, and the kernel would go on reporting it.
  poller_.unwatch(client->second.fd.get());
  ::shutdown(client->second.fd.get(), SHUT_RDWR);
  engine_.close(*client->second.session);
  clients_.erase(client);
  connections_.store(clients_.size(), std::memory_order_relaxed);
}

void StoreServer::Impl::say_stranger(int fd) noexcept {
  if (std::exchange(has_said_stranger_, true)) return;
  core::log::warn("store server: dropped a connection from {} that has not proven to be of this job; said once",
                  net::numeric_peer(fd));
}

StoreServer::StoreServer(const StoreServerSpec& spec) : impl_(std::make_unique<Impl>(spec)) {}

StoreServer::~StoreServer() {
  // A forked child has no thread to join; its copy of the descriptors is closed when it ends.
  if (impl_ && impl_->is_of_another_process()) (void)impl_.release();
}

std::string StoreServer::url() const {
  return impl_->url();
}

int StoreServer::port() const noexcept {
  return impl_->port();
}

std::size_t StoreServer::connections() const noexcept {
  return impl_->connections();
}

void StoreServer::stop() noexcept {
  if (!impl_->is_of_another_process()) impl_->stop();
}

}  // namespace col

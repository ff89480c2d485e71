#include "backend/ucx/channel.hpp"

#include <array>
#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include "backend/far_wait.hpp"
#include "backend/ucx/connect.hpp"
#include "core/clock/clock.hpp"

namespace col::ucx_backend {
namespace {

core::UniqueFd required(int descriptor) {
  if (descriptor >= 0) return core::UniqueFd(descriptor);
  throw Error(ErrorCode::resource,
              fmt::format("ucx: no file descriptor left ({}); raise the limit of open files (ulimit -n)",
                          std::generic_category().message(errno)));
}

}  // namespace

UcxChannel::UcxChannel(const ConnectRequest& request, std::unique_ptr<Engine> engine)
    : Channel({.wire = this}),
      group_(request.group),
      rank_(request.rank),
      size_(request.size),
      store_(request.store),
      is_crowded_(backend::is_crowded(request)),
      wake_(required(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))),
      events_(required(::fcntl(engine->event_descriptor(), F_DUPFD_CLOEXEC, 0))),
      engine_(std::move(engine)) {}

UcxChannel::~UcxChannel() {
  if (fork_guard_.is_forked_child()) {
    // What UCX has there belongs to the parent.
    [[maybe_unused]] Engine* const left_alone = engine_.release();
    [[maybe_unused]] Watcher* const without_thread = watcher_.release();
    return;  // the other channel does nothing there, either
  }
  if (cause_.is_set()) return;
  leave(*store_, rank_, size_);
  engine_->say_goodbye();
}

void UcxChannel::be_told_by(std::unique_ptr<Channel> watch) {
  const std::lock_guard lock(mutex_);
  hosts_ = watch->can().host_watch;
  if (hosts_ == nullptr)
    throw Error(ErrorCode::internal, "ucx: what is to watch the hosts does not; please report this as a bug in col");
  watch_ = std::move(watch);
  if (cause_.is_set()) watch_->abort(cause_.get());
}

void UcxChannel::enter(const char* call) {
  if (fork_guard_.is_forked_child()) backend::throw_forked(call, group_);
  if (!cause_.is_set()) return;
  // Whoever is told that it is broken may free what was posted: not before the engine has let go of it.
  abort(cause_.get());
  cause_.check(call, group_);
}

void UcxChannel::fail(const Error& error) {
  const Error named(error.code(), error.message(), error.group().empty() ? group_ : error.group(), error.rank(),
                    error.world_rank(), error.is_loss());
  abort(named);
  throw named;
}

// Runs `body` with the engine, which must not have been broken off. Whatever fails breaks the channel.
template <class Body>
auto UcxChannel::guarded(Body body) {
  try {
    const std::lock_guard lock(mutex_);
    if (cause_.is_set()) throw cause_.get();
    return body();
  } catch (const Error& error) {
    fail(error);
  } catch (const std::bad_alloc&) {
    fail(Error(ErrorCode::resource,
               "ucx: out of memory for messages that came before their receive; free some, or receive sooner"));
  }
}

void UcxChannel::require_peers() {
  guarded([&] {
    engine_->progress();
    engine_->require_peers();
  });
}

// ---- Messages

Operation& UcxChannel::find(Ticket ticket) {
  if (Operation* const operation = engine_->find(ticket)) return *operation;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("ucx: ticket {:#x} is not in use; a ticket ends when test() returns a peer, or wait() returns",
                  ticket.id),
      group_);
}

Ticket UcxChannel::post_send(int peer, std::uint64_t slot, ConstTensorView data) {
  enter("post_send");
  backend::check_peer("post_send", peer, rank_, size_, group_);
  return guarded(
      [&] { return Ticket{engine_->send(peer, slot, static_cast<const std::byte*>(data.data), data.bytes()).ticket}; });
}

Ticket UcxChannel::post_recv(int peer, std::uint64_t slot, TensorView data) {
  enter("post_recv");
  if (peer != kAnyPeer || size_ == 1) backend::check_peer("post_recv", peer, rank_, size_, group_);
  return guarded(
      [&] { return Ticket{engine_->receive(peer, slot, static_cast<std::byte*>(data.data), data.bytes()).ticket}; });
}

int UcxChannel::finish(Operation& operation) {
  const int peer = operation.peer;
  const std::lock_guard lock(mutex_);
  engine_->remove(operation);
  return peer;
}

// In guarded(), after what has come was taken.
void UcxChannel::look_at_hosts() {
  const auto lost = hosts_ != nullptr ? hosts_->lost_host() : nullptr;
  if (lost != nullptr) std::rethrow_exception(lost);
}

// True when `operation` is done. Throws when it never will be.
bool UcxChannel::step(Operation& operation) {
  return guarded([&] {
    if (operation.done) return true;
    const bool is_time = engine_->progress();
    if (operation.done) return true;
    engine_->require_hope(operation);
    if (is_time) look_at_hosts();
    return false;
  });
}

std::optional<int> UcxChannel::test(Ticket ticket) {
  enter("test");
  Operation& operation = find(ticket);
  if (!step(operation)) return std::nullopt;
  return finish(operation);
}

int UcxChannel::wait(Ticket ticket, WaitContext& wait) {
  enter("wait");
  Operation& operation = find(ticket);
  try {
    wait_until_done(operation, wait);
  } catch (const Error& error) {
    fail(error);
  } catch (...) {
    abort(Error(ErrorCode::aborted, "the wait was interrupted", group_));
    throw;
  }
  return finish(operation);
}

void UcxChannel::wait_until_done(Operation& operation, WaitContext& wait) {
  const auto keeps_until =
      Deadline::Clock::now() + (is_crowded_ ? Duration::zero() : Duration(backend::kFarKeepingTime));
  do {
    for (int look = 0; look < backend::kFarLooksAtOnce; ++look) {
      if (step(operation)) return;
    }
  } while (Deadline::Clock::now() < keeps_until);
  const int peer = operation.peer;
  wait.describe([sending = operation.sending, peer] {
    if (sending) return fmt::format("rank {} to receive what was sent to it", peer);
    return peer == kAnyPeer ? std::string("data from any rank") : fmt::format("data from rank {}", peer);
  });
  wait.waiting(-1, peer);
  for (;;) {
    for (const auto until = Deadline::Clock::now() + backend::kFarYieldingTime; Deadline::Clock::now() < until;) {
      wait.check();
      core::yield();
      if (step(operation)) return;
    }
    sleep(wait.slice());
    wait.check();
    if (step(operation)) return;
  }
}

// Until there may be something to do, or for that time.
void UcxChannel::sleep(Duration time) {
  if (!guarded([&] { return engine_->arm(); })) return;
  std::array<pollfd, 2> watched{pollfd{events_.get(), POLLIN, 0}, pollfd{wake_.get(), POLLIN, 0}};
  core::poll_for(watched, time);
}

// ---- As the wire of a group over hosts

void UcxChannel::progress() {
  enter("progress");
  guarded([&] {
    if (engine_->progress()) look_at_hosts();
  });
}

backend::SideOps::Probed UcxChannel::probe(std::span<const int> peers, std::uint64_t slot, std::size_t /*bytes*/) {
  enter("probe");
  return guarded([&] { return engine_->probe(peers, slot); });
}

void UcxChannel::on_change(std::function<void()> ring) {
  if (fork_guard_.is_forked_child()) return;
  watcher_.reset();
  if (ring) watcher_ = std::make_unique<Watcher>(events_.get(), std::move(ring));
}

bool UcxChannel::may_sleep() {
  enter("wait");
  if (!guarded([&] { return engine_->arm(); })) return false;
  if (watcher_ != nullptr) watcher_->watch();
  return true;
}

// ---- Collectives, and the end

Ticket UcxChannel::start_native(const Request& request, WaitContext& /*wait*/) {
  enter(to_string(request.collective).data());
  fail(Error(ErrorCode::internal, "ucx: it has no collectives of its own; please report this as a bug in col"));
}

void UcxChannel::abort(const Error& cause) noexcept {
  if (fork_guard_.is_forked_child()) return;
  cause_.set(cause);
  ::eventfd_write(wake_.get(), 1);
  const std::lock_guard lock(mutex_);
  engine_->break_off(cause);
  if (watch_ != nullptr) watch_->abort(cause);
}

}  // namespace col::ucx_backend

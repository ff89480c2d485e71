#include "backend/gloo/channel.hpp"

#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "backend/gloo/signals.hpp"
#include "backend/gloo/slots.hpp"
#include "backend/gloo/translate.hpp"

namespace col::gloo_backend {

GlooChannel::GlooChannel(std::string group, std::shared_ptr<Mesh> mesh)
    : group_(std::move(group)), pid_(getpid()), mesh_(std::move(mesh)), native_(mesh_) {}

GlooChannel::~GlooChannel() {
  if (getpid() != pid_) {
    // The event thread stayed in the parent, and closing a connection waits for it. Left to the end of this process.
    [[maybe_unused]] auto* const mesh = new std::shared_ptr<Mesh>(std::move(mesh_));
    [[maybe_unused]] auto* const tickets = new Tickets(std::move(tickets_));
    native_.forget();
    return;
  }
  mesh_->loop().ticker().start();
}

void GlooChannel::enter(const char* call) const {
  if (getpid() != pid_) {
    throw Error(ErrorCode::not_initialized,
                fmt::format("{}: this process was forked after the group was made; create groups after fork()", call),
                group_);
  }
  if (const auto cause = transport().cause()) {
    throw Error(
        ErrorCode::aborted,
        fmt::format("{}: the group was broken by an earlier error; destroy it and create it anew. First cause: {}",
                    call, cause->what()),
        group_, cause->rank());
  }
}

void GlooChannel::check_peer(const char* call, int peer) const {
  if (peer >= 0 && peer < mesh_->size && peer != mesh_->rank) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: peer {} is {}; this is rank {} of {}", call, peer,
                          peer == mesh_->rank ? "this rank itself" : "not in the group", mesh_->rank, mesh_->size),
              group_, peer);
}

void GlooChannel::fail(const std::exception_ptr& failure, WaitContext* wait) {
  const Error error = translate(failure, &transport(), group_, wait);
  // Closes all connections, so that ranks which wait for this one through others learn of it at once.
  transport().break_off(error);
  throw error;
}

template <class Body>
auto GlooChannel::guarded(WaitContext* wait, Body body) {
  const SigpipeGuard sigpipe;
  const GuardedContext::WaitScope scope(transport(), wait);
  try {
    return body();
  } catch (...) {
    fail(std::current_exception(), wait);
  }
}

Ticket GlooChannel::post_send(int peer, std::uint64_t slot, ConstTensorView data) {
  enter("post_send");
  check_peer("post_send", peer);
  return guarded(nullptr, [&] {
    // Gloo has one type for both directions; a buffer that is only sent is only read.
    auto buffer = mesh_->createUnboundBuffer(const_cast<void*>(data.data), data.bytes());
    buffer->send(peer, message_slot(slot, data.bytes()), 0, data.bytes());
    return tickets_.add(std::move(buffer), Tickets::Direction::send);
  });
}

Ticket GlooChannel::post_recv(int peer, std::uint64_t slot, TensorView data) {
  enter("post_recv");
  check_peer("post_recv", peer);
  return guarded(nullptr, [&] {
    auto buffer = mesh_->createUnboundBuffer(data.data, data.bytes());
    buffer->recv(peer, message_slot(slot, data.bytes()), 0, data.bytes());
    return tickets_.add(std::move(buffer), Tickets::Direction::recv);
  });
}

bool GlooChannel::test(Ticket ticket) {
  enter("test");
  const Tickets::Posted& posted = tickets_.find(ticket);
  const bool done = guarded(nullptr, [&] {
    GuardedBuffer& buffer = posted.guarded();
    return posted.direction == Tickets::Direction::send ? buffer.test_send() : buffer.test_recv();
  });
  if (done) tickets_.remove(ticket);
  return done;
}

void GlooChannel::wait(Ticket ticket, WaitContext& wait) {
  enter("wait");
  const Tickets::Posted& posted = tickets_.find(ticket);
  guarded(&wait, [&] {
    GuardedBuffer& buffer = posted.guarded();
    if (posted.direction == Tickets::Direction::send) {
      buffer.waitSend(nullptr, ::gloo::transport::kUnsetTimeout);
    } else {
      buffer.waitRecv(nullptr, ::gloo::transport::kUnsetTimeout);
    }
  });
  tickets_.remove(ticket);
}

std::span<const NativeEntry> GlooChannel::native_entries() const {
  return Native::entries();
}

void GlooChannel::native(const Request& request, WaitContext& wait) {
  enter(to_string(request.collective).data());
  guarded(&wait, [&] { native_.run(request); });
}

void GlooChannel::abort(const Error& cause) noexcept {
  if (getpid() != pid_) return;
  const SigpipeGuard sigpipe;
  transport().break_off(cause);
}

}  // namespace col::gloo_backend

#include "backend/gloo/channel.hpp"

#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "backend/gloo/slots.hpp"
#include "backend/gloo/translate.hpp"
#include "core/blocked_signal.hpp"

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
  if (!transport().broken()) {
    const core::BlockedSignal sigpipe(SIGPIPE);
    transport().say_goodbye();
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

std::vector<int> GlooChannel::peers() const {
  std::vector<int> peers;
  for (int peer = 0; peer < mesh_->size; ++peer) {
    if (peer != mesh_->rank) peers.push_back(peer);
  }
  return peers;
}

void GlooChannel::fail(const std::exception_ptr& failure, WaitContext* wait) {
  const Error error = translate(failure, &transport(), group_, wait);
  // Closes all connections, so that ranks which wait for this one through others learn of it at once.
  transport().break_off(error);
  throw error;
}

template <class Body>
auto GlooChannel::guarded(WaitContext* wait, Body body) {
  const core::BlockedSignal sigpipe(SIGPIPE);
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
  if (peer != kAnyPeer || mesh_->size == 1) check_peer("post_recv", peer);
  return guarded(nullptr, [&] {
    const std::uint64_t key = message_slot(slot, data.bytes());
    auto buffer = mesh_->createUnboundBuffer(data.data, data.bytes());
    // A receive that names its peer tells it so at once, and the message comes without a further round trip. One that
    // takes the first message waits in line until a peer has announced one. Gloo would serve those that tell before
    // those in line, so behind one in line, all receives of its slot wait there.
    if (peer != kAnyPeer && !tickets_.has_line(key)) {
      buffer->recv(peer, key, 0, data.bytes());
      return tickets_.add(std::move(buffer), Tickets::Direction::recv);
    }
    const std::vector<int> sources = peer == kAnyPeer ? peers() : std::vector{peer};
    static_cast<GuardedBuffer&>(*buffer).recv_from_first(sources, key, data.bytes());
    return tickets_.add(std::move(buffer), Tickets::Direction::recv, key);
  });
}

std::optional<int> GlooChannel::test(Ticket ticket) {
  enter("test");
  const Tickets::Posted& posted = tickets_.find(ticket);
  const std::optional<int> peer = guarded(nullptr, [&] {
    GuardedBuffer& buffer = posted.guarded();
    return posted.direction == Tickets::Direction::send ? buffer.test_send() : buffer.test_recv();
  });
  if (peer) tickets_.remove(ticket);
  return peer;
}

int GlooChannel::wait(Ticket ticket, WaitContext& wait) {
  enter("wait");
  const Tickets::Posted& posted = tickets_.find(ticket);
  int peer = -1;
  guarded(&wait, [&] {
    GuardedBuffer& buffer = posted.guarded();
    if (posted.direction == Tickets::Direction::send) {
      buffer.waitSend(&peer, ::gloo::transport::kUnsetTimeout);
    } else {
      buffer.waitRecv(&peer, ::gloo::transport::kUnsetTimeout);
    }
  });
  tickets_.remove(ticket);
  return peer;
}

std::span<const NativeEntry> GlooChannel::native_entries() const {
  return Native::entries();
}

Ticket GlooChannel::start_native(const Request& request, WaitContext& wait) {
  enter(to_string(request.collective).data());
  guarded(&wait, [&] { native_.run(request); });
  return kEnded;
}

void GlooChannel::abort(const Error& cause) noexcept {
  if (getpid() != pid_) return;
  const core::BlockedSignal sigpipe(SIGPIPE);
  transport().break_off(cause);
}

}  // namespace col::gloo_backend

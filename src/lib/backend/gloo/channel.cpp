#include "backend/gloo/channel.hpp"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "backend/build_id.hpp"
#include "backend/channel_checks.hpp"
#include "backend/gloo/connect.hpp"
#include "backend/gloo/translate.hpp"
#include "backend/module.hpp"
#include "core/duration.hpp"

namespace col::gloo_backend {

GlooChannel::GlooChannel(std::string group, std::shared_ptr<Mesh> mesh)
    : Channel({.drafts = this, .wire = this, .host_watch = this}),
      group_(std::move(group)),
      mesh_(std::move(mesh)),
      native_(mesh_) {}

GlooChannel::~GlooChannel() {
  if (fork_guard_.is_forked_child()) {
    // The event thread stayed in the parent, and closing a connection waits for it. Left to the end of this process.
    [[maybe_unused]] auto* const mesh = new std::shared_ptr<Mesh>(std::move(mesh_));
    [[maybe_unused]] auto* const posted = new auto(std::move(posted_));
    native_.forget();
    return;
  }
  if (!transport().broken()) transport().say_goodbye();
}

void GlooChannel::enter(const char* call) const {
  if (fork_guard_.is_forked_child()) backend::throw_forked(call, group_);
  transport().cause().check(call, group_);
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
  const GuardedContext::WaitScope scope(transport(), wait);
  try {
    return body();
  } catch (...) {
    fail(std::current_exception(), wait);
  }
}

// ---- Messages

Ticket GlooChannel::add(Posted posted) {
  if (posted.line != 0) ++lines_[posted.line];
  posted_.emplace(next_ticket_, std::move(posted));
  return Ticket{next_ticket_++};
}

const GlooChannel::Posted& GlooChannel::find(Ticket ticket) const {
  const auto found = posted_.find(ticket.id);
  if (found != posted_.end()) return found->second;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("gloo: ticket {:#x} is not in use; a ticket ends when test() returns a peer or wait() returns",
                  ticket.id));
}

void GlooChannel::remove(Ticket ticket) {
  const auto line = lines_.find(find(ticket).line);
  if (line != lines_.end() && --line->second == 0) lines_.erase(line);
  posted_.erase(ticket.id);
}

Ticket GlooChannel::post_send(int peer, std::uint64_t slot, ConstTensorView data) {
  enter("post_send");
  backend::check_peer("post_send", peer, mesh_->rank, mesh_->size, group_);
  return guarded(nullptr, [&] {
    Buffer buffer = buffer_of(*mesh_, data.data, data.bytes());
    static_cast<GuardedBuffer&>(*buffer).send_message(peer, slot, data.bytes());
    return add({.buffer = std::move(buffer), .sends = true});
  });
}

Ticket GlooChannel::post_recv(int peer, std::uint64_t slot, TensorView data) {
  enter("post_recv");
  if (peer != kAnyPeer || mesh_->size == 1) backend::check_peer("post_recv", peer, mesh_->rank, mesh_->size, group_);
  return guarded(nullptr, [&] {
    const std::uint64_t stream = stream_slot(slot);
    Buffer buffer = buffer_of(*mesh_, data.data, data.bytes());
    auto& receive = static_cast<GuardedBuffer&>(*buffer);
    // A large receive that names its peer tells it so at once, and the message comes without a further round trip. One
    // that takes the first message waits in line until a peer has announced one. A peer would serve those that tell
    // before those in line, so behind one in line, all receives of its stream wait there.
    if (peer != kAnyPeer && !lines_.contains(stream)) {
      receive.recv_message(peer, slot, data.bytes());
      return add({.buffer = std::move(buffer)});
    }
    receive.recv_message_from_first(peer == kAnyPeer ? peers() : std::vector{peer}, slot, data.bytes());
    return add({.buffer = std::move(buffer), .line = stream});
  });
}

std::optional<int> GlooChannel::test(Ticket ticket) {
  enter("test");
  const Posted& posted = find(ticket);
  const std::optional<int> peer =
      guarded(nullptr, [&] { return posted.sends ? posted.guarded().test_send() : posted.guarded().test_recv(); });
  if (peer) remove(ticket);
  return peer;
}

int GlooChannel::wait(Ticket ticket, WaitContext& wait) {
  enter("wait");
  const Posted& posted = find(ticket);
  int peer = -1;
  guarded(&wait, [&] {
    if (posted.sends) {
      posted.guarded().waitSend(&peer, ::gloo::transport::kUnsetTimeout);
    } else {
      posted.guarded().waitRecv(&peer, ::gloo::transport::kUnsetTimeout);
    }
  });
  remove(ticket);
  return peer;
}

backend::SideOps::Probed GlooChannel::probe(std::span<const int> peers, std::uint64_t slot, std::size_t bytes) {
  enter("probe");
  return guarded(nullptr, [&] { return transport().probe(peers, line_of(stream_slot(slot), bytes)); });
}

void GlooChannel::progress() {
  enter("progress");
  guarded(nullptr, [&] { transport().progress(); });
}

bool GlooChannel::may_sleep() {
  enter("wait");
  guarded(nullptr, [&] { transport().may_sleep(); });
  return true;
}

void GlooChannel::on_change(std::function<void()> ring) {
  if (!fork_guard_.is_forked_child()) transport().on_change(std::move(ring));
}

std::unique_ptr<backend::Draft> GlooChannel::draft(const ConnectRequest& request, std::span<const int> ranks) {
  enter("draft");
  return draft_mesh(request, ranks, mesh_);
}

// ---- Collectives, and the end

std::span<const NativeEntry> GlooChannel::native_entries() const {
  return Native::entries();
}

Ticket GlooChannel::start_native(const Request& request, WaitContext& wait) {
  enter(to_string(request.collective).data());
  guarded(&wait, [&] { native_.run(request); });
  return kEnded;
}

void GlooChannel::abort(const Error& cause) noexcept {
  if (fork_guard_.is_forked_child()) return;
  transport().break_off(cause);
}

// ---- The factory

namespace {

class Factory final : public BackendFactory {
 public:
  explicit Factory(backend::Module::Environment environment) : environment_(std::move(environment)) {}

  std::string_view name() const override { return "gloo"; }

  // The library that it is in needs Gloo, and TCP needs nothing that a machine may lack; a missing interface is an
  // error of connect().
  std::optional<std::string> unavailable_reason() const override { return std::nullopt; }

  std::unique_ptr<Channel> connect(const ConnectRequest& request, WaitContext& wait) override {
    HeartbeatSpec spec;
    try {
      spec = heartbeat();
    } catch (const Error& error) {
      throw refuse_mesh(request, error, wait);
    }
    return std::make_unique<GlooChannel>(std::string(request.group), connect_mesh(request, spec, wait));
  }

  std::string describe(const ConnectRequest& request) const override {
    const Interface interface = choose_interface(request.same_host, request.socket_ifname);
    return fmt::format("TCP over {} ({})", interface.name, interface.address);
  }

 private:
  HeartbeatSpec heartbeat() const {
    constexpr Duration kLeast = std::chrono::milliseconds(500);  // less is what a busy process may stand still for
    const auto text = environment_("COL_HOST_TIMEOUT");
    const auto time = text ? core::parse_duration(*text) : HeartbeatSpec::kDefault;
    if (!time || *time < kLeast)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("COL_HOST_TIMEOUT='{}' is not a time of at least 500 ms; write 5s, 500ms or 2m, the same on "
                      "all hosts",
                      *text));
    return {.host_timeout = *time};
  }

  const backend::Module::Environment environment_;
};

std::unique_ptr<BackendFactory> make_factory(backend::Module::Environment environment) {
  return std::make_unique<Factory>(std::move(environment));
}

}  // namespace
}  // namespace col::gloo_backend

extern "C" COL_EXPORT const col::backend::Module* col_backend_entry() {
  static constexpr col::backend::Module kModule{col::backend::kBuildId, col::gloo_backend::make_factory};
  return &kModule;
}

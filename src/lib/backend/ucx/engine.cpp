#include "backend/ucx/engine.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "backend/interfaces.hpp"
#include "core/log.hpp"

namespace col::ucx_backend {
namespace {

using namespace std::chrono_literals;

constexpr unsigned kMessageId = 1;
// How often one call of progress() asks UCX for more, so that a peer that never stops sending does not keep it.
constexpr int kRounds = 16;
// As many as UCX takes to close endpoints, whatever their peers still send.
constexpr int kFewRounds = 8, kLastRounds = 256;
// How long a rank that leaves tries to get its last words out, to a peer that does not read.
constexpr auto kFarewell = 10s;
// How long the hardware of a fabric has to confirm them.
constexpr auto kConfirmation = 10ms;
constexpr auto kNap = 10ms;
constexpr std::size_t kMostWords = 500;  // of an error, for the peers

std::string what_is_awaited(const Operation& operation) {
  if (operation.sending) return fmt::format("rank {} to receive what was sent to it", operation.peer);
  if (operation.peer == kAnyPeer) return "data from any rank";
  return fmt::format("data from rank {}", operation.peer);
}

ucp_request_param_t parameters_for(void* user) {
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  parameters.memory_type = UCS_MEMORY_TYPE_HOST;
  parameters.user_data = user;
  return parameters;
}

}  // namespace

Engine::Engine(const ConnectRequest& request, const BackendModule::Environment& environment)
    : rank_(request.rank),
      token_(request.token),
      secret_(make_nonce()),
      store_(request.store),
      settings_(choose_settings(request, environment)),
      peers_(static_cast<std::size_t>(request.size)) {
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    peers_[i].engine = this;
    peers_[i].rank = static_cast<int>(i);
  }
  (void)make_proof({}, ProofRole::server, {});  // here, where it may fail, and not in a function that UCX calls
  const std::set<std::string> before = Sockets::listening();
  worker_ = std::make_unique<Worker>(settings_, request.size - 1, environment);
  std::set<std::string> own = Sockets::listening();
  for (const std::string& address : before) own.erase(address);
  sockets_.set_own(std::move(own));
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = kMessageId;
  handler.cb = &Engine::on_message;
  handler.arg = this;
  require_ok(ucp_worker_set_am_recv_handler(worker_->handle(), &handler), "take messages");
}

Engine::~Engine() {
  close();
}

// A worker with requests under way cannot be destroyed: UCX ends the process. So the endpoints go first, by force, and
// their requests with them.
void Engine::close() noexcept {
  if (worker_ == nullptr) return;
  is_closing_ = true;
  // UCX also ends the process over an endpoint that goes while it is still connecting. Then its sockets go instead, and
  // the worker stays to the end of the process, where nothing moves it any more.
  const auto is_connecting = [](const Peer& peer) { return peer.endpoint != nullptr && !peer.proven && !peer.closed; };
  if (std::any_of(peers_.begin(), peers_.end(), is_connecting)) {
    sockets_.shut();
    [[maybe_unused]] Worker* const left_alone = worker_.release();
    return;
  }
  ucp_request_param_t by_force{};
  by_force.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  by_force.flags = UCP_EP_CLOSE_FLAG_FORCE;
  for (Peer& peer : peers_) {
    if (peer.endpoint == nullptr) continue;
    const ucs_status_ptr_t request = ucp_ep_close_nbx(std::exchange(peer.endpoint, nullptr), &by_force);
    if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);
  }
  for (int round = 0; round < kLastRounds && (worker_->progress() || round < kFewRounds); ++round) {
  }
  worker_.reset();
}

// ---- Connections

Record Engine::record() const {
  Record record{.secret = secret_,
                .listens = {sockets_.own().begin(), sockets_.own().end()},
                .hosts = {},
                .address = worker_->address()};
  for (const auto& interface : backend::list_interfaces("ucx")) record.hosts.push_back(interface.address);
  return record;
}

Engine::Peer* Engine::peer(int rank) noexcept {
  const bool exists = rank >= 0 && rank < static_cast<int>(peers_.size()) && rank != rank_;
  return exists ? &peers_[static_cast<std::size_t>(rank)] : nullptr;
}

// Whether there is an endpoint to that peer: makes one if the peer has not left.
bool Engine::connect(Peer& peer) {
  if (peer.endpoint != nullptr) return true;
  if (peer.left || !peer.lost.empty()) return false;
  const std::optional<std::string> text = store_->get(Record::key(peer.rank));
  if (!text) {
    peer.left = true;
    return false;
  }
  const std::optional<Record> record = Record::decode(*text, token_);
  if (!record) {
    throw Error(
        ErrorCode::mismatch,
        fmt::format("ucx: what the store has of rank {} is of another job or group; create the group again", peer.rank),
        {}, peer.rank);
  }
  for (const std::string& address : record->listens) sockets_.add_peer(address);
  // If that rank has connected to this one and has died since, UCX must know it: it would end the process over an
  // endpoint that it makes on a connection that is reset (an assertion of its TCP).
  for (int round = 0; round < kFewRounds; ++round) worker_->progress();
  const bool is_lower = rank_ < peer.rank;
  peer.introduction = std::make_unique<Introduction>(
      fmt::format("{:016x} {} {}", token_, is_lower ? secret_ : record->secret, is_lower ? record->secret : secret_),
      rank_, peer.rank);

  ucp_ep_params_t parameters{};
  parameters.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  parameters.address = reinterpret_cast<const ucp_address_t*>(record->address.data());
  parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  parameters.err_handler.cb = &Engine::on_error;
  parameters.err_handler.arg = &peer;
  const ucs_status_t status = ucp_ep_create(worker_->handle(), &parameters, &peer.endpoint);
  if (status == UCS_OK) return true;
  peer.endpoint = nullptr;
  peer.closed = status;
  settle(peer);
  return false;
}

void Engine::greet(Peer& peer) {
  if (peer.greeted || peer.proven || !connect(peer)) return;
  peer.greeted = true;
  tell(peer, Kind::hello, peer.introduction->nonce());
}

bool Engine::has_met_all() {
  bool all = true;
  for (Peer& other : peers_) {
    if (other.rank == rank_ || other.proven) continue;
    greet(other);
    if (!other.lost.empty()) throw Error(ErrorCode::peer_lost, other.lost, {}, other.rank);
    all = false;
  }
  return all;
}

// A note that cannot be sent goes to a peer that is lost, and UCX says so.
void Engine::tell(Peer& peer, Kind kind, std::string text) {
  if (peer.closed) return;
  const bool has_key = kind != Kind::hello && kind != Kind::proof;
  Note& note = notes_.emplace_back();
  note.place = std::prev(notes_.end());
  note.engine = this;
  note.header = {.kind = kind, .from = rank_, .key = has_key ? peer.keys.out : 0, .number = peer.sent};
  note.text = std::move(text);
  ucp_request_param_t parameters = parameters_for(&note);
  parameters.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
  parameters.flags = UCP_AM_SEND_FLAG_EAGER;
  parameters.cb.send = &Engine::on_told;
  const ucs_status_ptr_t request = ucp_am_send_nbx(peer.endpoint, kMessageId, &note.header, sizeof note.header,
                                                   note.text.data(), note.text.size(), &parameters);
  if (!UCS_PTR_IS_PTR(request)) notes_.erase(note.place);
}

void Engine::on_told(void* request, ucs_status_t /*status*/, void* note) {
  auto& told = *static_cast<Note*>(note);
  ucp_request_free(request);
  told.engine->notes_.erase(told.place);
}

void Engine::on_error(void* peer, ucp_ep_h /*endpoint*/, ucs_status_t status) {
  auto& closed = *static_cast<Peer*>(peer);
  if (!closed.closed) closed.closed = status;
  closed.engine->needs_attention_ = true;
}

// What has to be done outside of the functions that UCX calls.
void Engine::attend() {
  if (!std::exchange(needs_attention_, false)) return;
  for (Peer& peer : peers_) {
    if (const auto nonce = std::exchange(peer.to_answer, std::nullopt); nonce && !peer.proven && connect(peer)) {
      tell(peer, Kind::proof, peer.introduction->answer(*nonce));
      peer.answered = *nonce;
    }
    if (peer.proven) push_out(peer);
    if (peer.closed) settle(peer);
  }
}

// The connection is closed: what does that say of the peer?
void Engine::settle(Peer& peer) {
  if (peer.left || !peer.lost.empty()) return;
  // One that left before the two had proven themselves could say nothing. It has removed its record first.
  if (!peer.proven && !store_->get(Record::key(peer.rank))) {
    peer.left = true;
    return;
  }
  const char* const reason = ucs_status_string(*peer.closed);
  if (peer.endpoint == nullptr) {
    peer.lost = fmt::format(
        "no connection to rank {}: it died, left the group after an error of its own, or both ends lack an interface "
        "of "
        "one network (COL_SOCKET_IFNAME, UCX_NET_DEVICES) or a transport that both have (UCX_TLS); look at its output "
        "first [ucx: {}]",
        peer.rank, reason);
    return;
  }
  peer.lost = fmt::format(
      "lost the connection to rank {}: it died, left the group after an error of its own, or its host cannot be "
      "reached; look at its output first [ucx: {}]",
      peer.rank, reason);
}

// ---- Out

Operation& Engine::add(int peer, std::uint64_t slot, std::uint64_t bytes) {
  Operation& operation = operations_[next_ticket_];
  operation.ticket = next_ticket_++;
  operation.peer = peer;
  operation.slot = slot;
  operation.bytes = bytes;
  return operation;
}

Operation* Engine::find(Ticket ticket) noexcept {
  const auto found = operations_.find(ticket.id);
  return found == operations_.end() ? nullptr : &found->second;
}

Operation& Engine::send(int to, std::uint64_t slot, const std::byte* data, std::uint64_t bytes) {
  Operation& operation = add(to, slot, bytes);
  operation.sending = true;
  operation.source = data;
  Peer& receiver = *peer(to);
  receiver.outbox.push_back(&operation);
  greet(receiver);
  if (receiver.proven) push_out(receiver);
  return operation;
}

void Engine::push_out(Peer& peer) {
  while (!peer.outbox.empty() && !peer.closed) {
    Operation& send = *peer.outbox.front();
    peer.outbox.pop_front();
    start(peer, send);
  }
}

void Engine::start(Peer& peer, Operation& send) {
  send.header = {.kind = Kind::message, .from = rank_, .key = peer.keys.out, .slot = send.slot, .number = peer.sent++};
  ucp_request_param_t parameters = parameters_for(&send);
  parameters.cb.send = &Engine::on_sent;
  const ucs_status_ptr_t request = ucp_am_send_nbx(peer.endpoint, kMessageId, &send.header, sizeof send.header,
                                                   send.source, static_cast<std::size_t>(send.bytes), &parameters);
  if (request == nullptr)
    send.done = true;
  else if (UCS_PTR_IS_ERR(request))
    send.status = UCS_PTR_STATUS(request);
}

void Engine::on_sent(void* request, ucs_status_t status, void* operation) {
  auto& send = *static_cast<Operation*>(operation);
  send.done = status == UCS_OK;
  send.status = status;
  ucp_request_free(request);
}

// ---- In

Operation& Engine::receive(int from, std::uint64_t slot, std::byte* data, std::uint64_t bytes) {
  Operation& operation = add(from, slot, bytes);
  operation.target = data;
  Arrival* const arrival =
      unexpected_.take(slot, [from](const Arrival& candidate) { return from == kAnyPeer || candidate.peer == from; });
  if (arrival != nullptr) {
    pair(*arrival, operation);
    arrivals_.erase(arrival->place);
    return operation;
  }
  receives_.add(operation);
  // It has to learn when a rank that it waits for has died.
  if (from != kAnyPeer) greet(*peer(from));
  for (Peer& other : peers_) {
    if (from == kAnyPeer && other.rank != rank_) greet(other);
  }
  return operation;
}

ucs_status_t Engine::on_message(void* engine, const void* header, std::size_t header_bytes, void* data,
                                std::size_t bytes, const ucp_am_recv_param_t* parameters) {
  Engine& self = *static_cast<Engine*>(engine);
  const bool announced = (parameters->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  if (self.is_closing_) return announced ? UCS_INPROGRESS : UCS_OK;
  try {
    Header copy;
    if (header_bytes != sizeof copy) {
      self.say_stranger();
      return UCS_OK;
    }
    std::memcpy(&copy, header, sizeof copy);
    return self.take(copy, data, bytes, announced);
  } catch (...) {
    if (self.failure_ == nullptr) self.failure_ = std::current_exception();
    return announced ? UCS_INPROGRESS : UCS_OK;  // UCS_OK would tell the sender that it was taken
  }
}

// Returns UCS_INPROGRESS if UCX must keep what it has announced.
ucs_status_t Engine::take(const Header& header, void* data, std::size_t bytes, bool announced) {
  Peer* const from = peer(header.from);
  const std::string_view text(static_cast<const char*>(data), announced ? 0 : bytes);
  if (from == nullptr) {
    say_stranger();
  } else if (header.kind == Kind::hello) {
    take_hello(*from, text);
  } else if (header.kind == Kind::proof) {
    take_proof(*from, text);
  } else if (!from->proven || header.key != from->keys.in) {
    say_stranger();
  } else if (header.kind == Kind::message) {
    const Arrival arrival{.peer = from->rank,
                          .slot = header.slot,
                          .bytes = bytes,
                          .announced = announced ? data : nullptr,
                          .data = static_cast<const std::byte*>(data)};
    return take_message(*from, header, arrival) ? UCS_INPROGRESS : UCS_OK;
  } else if (header.kind == Kind::goodbye) {
    from->leaves_at = header.number;
    note_goodbye(*from);
  } else if (header.kind == Kind::broken && from->lost.empty()) {
    from->lost = fmt::format("rank {} left the group after an error of its own: {}", from->rank, text);
  }
  return UCS_OK;
}

void Engine::take_hello(Peer& peer, std::string_view nonce) {
  if (nonce.size() != kNonceBytes) return say_stranger();
  if (peer.proven) return;
  peer.to_answer = std::string(nonce);
  needs_attention_ = true;
}

void Engine::take_proof(Peer& peer, std::string_view words) {
  if (peer.proven) return;
  // Else it answers somebody who has said that he is this rank, or is a stranger's.
  const auto keys = peer.introduction != nullptr ? peer.introduction->check(words) : std::nullopt;
  if (!keys) return;
  peer.proven = true;
  peer.keys = *keys;
  const std::string nonce(words.substr(0, kNonceBytes));
  if (peer.answered != nonce) tell(peer, Kind::proof, peer.introduction->answer(nonce));
  needs_attention_ = true;  // to send what waits for it
}

void Engine::say_stranger() noexcept {
  if (std::exchange(has_said_stranger_, true)) return;
  core::log::warn("ucx: dropped a message from somebody who has not proven to be of this group; said once a group");
}

// Both return whether UCX must keep what it has announced.
bool Engine::take_message(Peer& peer, const Header& header, Arrival arrival) {
  if (header.number != peer.taken) {
    Arrival& kept = keep(std::move(arrival));
    if (peer.early.emplace(header.number, &kept).second) return kept.announced != nullptr;
    throw Error(ErrorCode::internal, fmt::format("ucx: two messages of rank {} have the same number", peer.rank), {},
                peer.rank);
  }
  const bool must_keep = deliver(peer, std::move(arrival));
  while (!peer.early.empty() && peer.early.begin()->first == peer.taken) {
    Arrival* const next = peer.early.begin()->second;
    peer.early.erase(peer.early.begin());
    Arrival moved = std::move(*next);
    arrivals_.erase(std::exchange(moved.place, {}));
    if (!moved.kept.empty()) moved.data = moved.kept.data();
    deliver(peer, std::move(moved));
  }
  note_goodbye(peer);
  return must_keep;
}

bool Engine::deliver(Peer& peer, Arrival arrival) {
  ++peer.taken;
  Operation* const receive = receives_.take(arrival.slot, [&](const Operation& candidate) {
    return candidate.peer == kAnyPeer || candidate.peer == arrival.peer;
  });
  const bool is_announced = arrival.announced != nullptr;
  if (receive != nullptr)
    pair(arrival, *receive);
  else
    unexpected_.add(keep(std::move(arrival)));
  return is_announced;
}

Engine::Arrival& Engine::keep(Arrival arrival) {
  if (arrival.announced == nullptr && arrival.kept.empty())
    arrival.kept.assign(arrival.data, arrival.data + arrival.bytes);
  Arrival& kept = arrivals_.emplace_back(std::move(arrival));
  kept.data = kept.kept.data();
  kept.place = std::prev(arrivals_.end());
  return kept;
}

void Engine::pair(Arrival& arrival, Operation& receive) {
  backend::require_equal(arrival.peer, arrival, receive);
  receive.peer = arrival.peer;
  if (arrival.announced == nullptr) {
    if (arrival.bytes > 0) std::memcpy(receive.target, arrival.data, arrival.bytes);
    receive.done = true;
    return;
  }
  ucp_request_param_t parameters = parameters_for(&receive);
  parameters.cb.recv_am = &Engine::on_received;
  const ucs_status_ptr_t request = ucp_am_recv_data_nbx(worker_->handle(), arrival.announced, receive.target,
                                                        static_cast<std::size_t>(receive.bytes), &parameters);
  if (request == nullptr)
    receive.done = true;
  else if (UCS_PTR_IS_ERR(request))
    receive.status = UCS_PTR_STATUS(request);
}

void Engine::on_received(void* request, ucs_status_t status, std::size_t /*bytes*/, void* operation) {
  auto& receive = *static_cast<Operation*>(operation);
  receive.done = status == UCS_OK;
  receive.status = status;
  ucp_request_free(request);
}

void Engine::note_goodbye(Peer& peer) noexcept {
  if (peer.leaves_at == peer.taken) peer.left = true;
}

// ---- The turn of the engine

void Engine::progress() {
  if (worker_ == nullptr) return;
  for (int round = 0; round < kRounds && worker_->progress(); ++round) {
  }
  sockets_.look();
  if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
  attend();
}

void Engine::require_hope(const Operation& operation) {
  if (operation.status != UCS_OK) {  // maybe before UCX has told of the connection
    Peer& other = *peer(operation.peer);
    if (!other.closed) other.closed = operation.status;
    settle(other);
  }
  const auto fail = [&](const std::string& why, int rank) { throw Error(ErrorCode::peer_lost, why, {}, rank); };
  const auto fail_left = [&](int rank) {
    fail(fmt::format("rank {} left the group while this rank waits for {}; every rank must make the same calls "
                     "before it destroys the group",
                     rank, what_is_awaited(operation)),
         rank);
  };
  if (operation.peer != kAnyPeer) {
    const Peer& other = *peer(operation.peer);
    if (!other.lost.empty()) fail(other.lost, other.rank);
    if (other.left) fail_left(other.rank);
  } else {
    int last_left = -1, others = 0;
    for (const Peer& other : peers_) {
      if (other.rank == rank_) continue;
      if (!other.lost.empty()) fail(other.lost, other.rank);
      if (other.left)
        last_left = other.rank;
      else
        ++others;
    }
    if (others == 0) fail_left(last_left);
  }
}

// ---- The end

void Engine::say_goodbye() noexcept {
  try {
    // UCX takes a second one when it has passed the first to the kernel.
    for (int i = 0; i < 2; ++i) {
      for (Peer& other : peers_) {
        if (other.proven && !other.left) tell(other, Kind::goodbye);
      }
    }
    const auto end = Deadline::Clock::now() + kFarewell;
    const auto is_goodbye = [](const Note& note) { return note.header.kind == Kind::goodbye; };
    while (std::any_of(notes_.begin(), notes_.end(), is_goodbye) && Deadline::Clock::now() < end) {
      if (!worker_->progress()) worker_->sleep(kNap);
    }
    if (!settings_.has_rdma()) return;
    ucp_request_param_t parameters{};
    const ucs_status_ptr_t flush = ucp_worker_flush_nbx(worker_->handle(), &parameters);
    if (!UCS_PTR_IS_PTR(flush)) return;
    const auto confirmed_by = Deadline::Clock::now() + kConfirmation;
    while (ucp_request_check_status(flush) == UCS_INPROGRESS && Deadline::Clock::now() < confirmed_by)
      worker_->progress();
    ucp_request_free(flush);
  } catch (const std::exception&) {  // a rank that leaves has no use for what comes in
  }
}

void Engine::break_off(const Error& cause) noexcept {
  if (worker_ == nullptr) return;
  try {
    for (Peer& other : peers_) {
      if (other.proven && !other.left && other.lost.empty())
        tell(other, Kind::broken, std::string(cause.message()).substr(0, kMostWords));
    }
  } catch (const std::exception&) {  // out of memory: they see that the connections close
  }
  close();
}

}  // namespace col::ucx_backend

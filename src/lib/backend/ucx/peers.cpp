// The connections to the peers: how they are made, proven and lost, and the words that are no messages.
#include <utility>

#include <fmt/format.h>

#include "backend/ucx/engine.hpp"
#include "core/log.hpp"
#include "net/interfaces.hpp"

namespace col::ucx_backend {
namespace {

std::string what_is_awaited(const Operation& operation) {
  if (operation.sending) return fmt::format("rank {} to receive what was sent to it", operation.peer);
  if (operation.peer == kAnyPeer) return "data from any rank";
  return fmt::format("data from rank {}", operation.peer);
}

}  // namespace

Record Engine::record() const {
  Record record{.secret = secret_,
                .listens = {sockets_.own().begin(), sockets_.own().end()},
                .hosts = {},
                .address = worker_->address()};
  for (const auto& interface : net::list_interfaces()) record.hosts.push_back(interface.address);
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
  if (all) sockets_.look_soon();
  return all;
}

void Engine::require_peers() const {
  for (const Peer& other : peers_) {
    if (!other.lost.empty()) throw Error(ErrorCode::peer_lost, other.lost, {}, other.rank);
  }
}

// ---- Words

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

// ---- Ends of connections

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
        "of one network (COL_SOCKET_IFNAME, UCX_NET_DEVICES) or a transport that both have (UCX_TLS); look at its "
        "output first [ucx: {}]",
        peer.rank, reason);
    return;
  }
  peer.lost = fmt::format(
      "lost the connection to rank {}: it died, left the group after an error of its own, or its host cannot be "
      "reached; look at its output first [ucx: {}]",
      peer.rank, reason);
}

void Engine::note_goodbye(Peer& peer) noexcept {
  if (peer.leaves_at == peer.taken) peer.left = true;
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

}  // namespace col::ucx_backend

// Messages on their way in: what comes finds its receive, or waits for it.
#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "backend/ucx/engine.hpp"

namespace col::ucx_backend {

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

backend::SideOps::Probed Engine::probe(std::span<const int> senders, std::uint64_t slot) {
  progress();
  if (const Arrival* const first = unexpected_.first(slot)) return {first->peer, false};
  bool all_left = true;
  for (const int sender : senders) {
    const Peer& other = *peer(sender);
    if (!other.lost.empty()) throw Error(ErrorCode::peer_lost, other.lost, {}, other.rank);
    all_left = all_left && other.left;
  }
  return {-1, all_left};
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

}  // namespace col::ucx_backend

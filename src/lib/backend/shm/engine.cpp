#include "backend/shm/engine.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "backend/shm/segment/doorbell.hpp"
#include "core/hash.hpp"

namespace col::shm_backend {
namespace {

using State = Operation::State;

constexpr std::size_t kLargestEager = 8 << 10;
static_assert(kLargestEager <= UnexpectedPool::kLargest);
// Small enough for both ends to work on a large message at the same time, out of their caches.
constexpr std::size_t kLargestPart = 32 << 10;
// Parts that one call of progress() sends to one peer, so that a fast reader does not keep it from reading.
constexpr int kPartsAtOnce = 4;

// For so many at a time nothing has to be allocated later.
std::size_t reserved_messages(int size) {
  return std::clamp<std::size_t>(4 * static_cast<std::size_t>(size), 16, 64);
}

}  // namespace

Engine::Engine(Segment& segment, int rank, const Names& names)
    : segment_(segment),
      rank_(rank),
      names_(names),
      proof_(core::Hash().add(segment.token()).add("messages").add(rank).value()),
      ring_bytes_(segment.ring_bytes()),
      eager_bytes_(std::min(kLargestEager, ring_bytes_ / 8)),
      part_bytes_(std::min(kLargestPart, ring_bytes_ / 4)),
      operations_(reserved_messages(segment.size())) {
  peers_.reserve(static_cast<std::size_t>(segment.size()) - 1);
  for (int other = 0; other < segment.size(); ++other) {
    if (other == rank) continue;
    Peer& peer = peers_.emplace_back();
    peer.rank = other;
    peer.out = Producer(segment.indices(rank, other), segment.ring(rank, other), ring_bytes_);
    if (segment.tuning().tries == 0) peer.out.try_nothing();
    peer.in = Consumer(segment.indices(other, rank), segment.ring(other, rank), ring_bytes_);
  }
}

void Engine::ring(int rank) const noexcept {
  Doorbell(segment_.place(rank).doorbell).ring();
}

void Engine::put(Peer& peer, const FrameHeader& header, const void* payload) {
  if (const std::size_t end = peer.out.end_of(header.payload_bytes); end > peer.claimed) claim(peer, end);
  peer.out.put(header, payload);
  ring(peer.rank);
}

// Before this rank writes that far into its ring to the peer.
void Engine::claim(Peer& peer, std::size_t bytes) {
  const bool first = peer.claimed == 0;
  peer.claimed = segment_.claim_ring(rank_, peer.rank, peer.claimed, bytes);
  if (!first) return;
  // seq_cst: the peer looks at it before it looks at the ring, also in its last look before it sleeps (doorbell.hpp).
  const std::size_t bit = static_cast<std::size_t>(rank_) % RankPlace::kSenderBits;
  segment_.place(peer.rank).senders[bit / 64].fetch_or(std::uint64_t{1} << (bit % 64), std::memory_order_seq_cst);
}

// Rings of ranks that have sent nothing are not looked at: of many ranks, most may never send to this one.
void Engine::look_for_senders() {
  auto& senders = segment_.place(rank_).senders;
  const std::size_t words = std::min(std::size(senders), peers_.size() / 64 + 1);
  for (std::size_t word = 0; word < words; ++word) {
    const std::uint64_t bits = senders[word].load(std::memory_order_seq_cst);  // see claim()
    if (bits == senders_[word]) continue;
    // Here, so that a group without messages need not have it.
    if (!std::exchange(has_pool_, true)) unexpected_pool_.reserve(reserved_messages(segment_.size()), eager_bytes_);
    senders_[word] = bits;
    for (Peer& peer : peers_) {
      const std::size_t bit = static_cast<std::size_t>(peer.rank) % RankPlace::kSenderBits;
      peer.sends = peer.sends || (bit / 64 == word && (bits >> (bit % 64) & 1) != 0);
    }
  }
}

Operation& Engine::send(int to, std::uint64_t slot, const std::byte* data, std::uint64_t bytes,
                        std::function<std::uint64_t()> filled) {
  Operation& operation = operations_.add();
  operation.filling = filled != nullptr;
  if (operation.filling) filling_.emplace(operation.ticket, std::move(filled));
  operation.sending = true;
  operation.peer = to;
  operation.source = data;
  operation.slot = slot;
  operation.bytes = bytes;
  Peer& target = peer(to);
  target.to_announce.push(operation);
  push_out(target);
  return operation;
}

Operation& Engine::receive(int from, std::uint64_t slot, std::byte* data, std::uint64_t bytes) {
  Operation& operation = operations_.add();
  operation.peer = from;
  operation.target = data;
  operation.slot = slot;
  operation.bytes = bytes;
  Unexpected* const message = unexpected_.take(
      slot, [from](const Unexpected& candidate) { return from == kAnyPeer || candidate.peer == from; });
  if (message == nullptr) {
    receives_.add(operation);
    return operation;
  }
  backend::require_equal(names_.of(message->peer), *message, operation);
  if (message->announced) {
    begin_large(peer(message->peer), operation, message->remote, message->offer);
  } else {
    if (bytes > 0) std::memcpy(data, message->data.get(), bytes);
    operation.peer = message->peer;
    operation.state = State::done;
  }
  unexpected_pool_.give_back(*message);
  return operation;
}

bool Engine::send_immediate(int to, std::uint64_t slot, const std::byte* data, std::uint64_t bytes) noexcept {
  Peer& target = peer(to);
  if (operations_.any() || bytes > eager_bytes_) return false;
  const auto payload = static_cast<std::size_t>(bytes);
  if (target.out.end_of(payload) > target.claimed || !target.out.fits(payload)) return false;
  put(target,
      {.kind = FrameKind::eager, .payload_bytes = static_cast<std::uint32_t>(payload), .slot = slot, .bytes = bytes},
      data);
  target.out.clear_ahead(target.claimed);
  return true;
}

bool Engine::receive_immediate(int from, std::uint64_t slot, std::byte* data, std::uint64_t bytes) noexcept {
  Peer& source = peer(from);
  // An earlier message of the stream may be among the unexpected ones.
  if (operations_.any() || !unexpected_.empty() || !source.sends || !source.in.is_there()) return false;
  const FrameHeader header = source.in.front();
  if (header.kind != FrameKind::eager || header.slot != slot || header.bytes != bytes) return false;
  source.in.read(data, header.payload_bytes);
  pop(source, header);
  return true;
}

int Engine::sender_of_waiting(std::uint64_t slot) const noexcept {
  const Unexpected* const message = unexpected_.first(slot);
  return message != nullptr ? message->peer : -1;
}

void Engine::progress() {
  const std::size_t others = peers_.size();
  if (others == 0) return;
  first_ = first_ + 1 < others ? first_ + 1 : 0;
  look_for_senders();
  for (std::size_t i = 0; i < others; ++i) {
    Peer& peer = peers_[(first_ + i) % others];
    if (peer.sends) take_in(peer);
  }
  if (!operations_.any()) return;  // of many peers, to look at each costs more than the rest
  for (Peer& peer : peers_) {
    push_out(peer);
    if (!peer.to_read.empty()) read_some(peer);
  }
}

// ---- Out

void Engine::push_out(Peer& peer) {
  // Answers first, as somebody waits for each of them; then what lets the other side make up its mind.
  if (clear_some(peer) && announce_some(peer)) stream_some(peer);
}

bool Engine::clear_some(Peer& peer) {
  while (!peer.to_clear.empty()) {
    if (!peer.out.fits(0)) return false;
    const Operation& receive = peer.to_clear.front();
    peer.to_clear.pop();
    put(peer, {.kind = FrameKind::clear, .slot = receive.ticket, .id = receive.remote});
  }
  return true;
}

bool Engine::announce_some(Peer& peer) {
  while (!peer.to_announce.empty()) {
    Operation& send = peer.to_announce.front();
    const bool eager = send.bytes <= eager_bytes_ && !send.filling;
    const Offer offer = eager ? Offer() : offer_of(send);
    const std::size_t payload = eager ? static_cast<std::size_t>(send.bytes) : offer.data != 0 ? sizeof offer : 0;
    if (!peer.out.fits(payload)) return false;
    peer.to_announce.pop();
    put(peer,
        {.kind = eager ? FrameKind::eager : FrameKind::request,
         .payload_bytes = static_cast<std::uint32_t>(payload),
         .slot = send.slot,
         .bytes = send.bytes,
         .id = send.ticket},
        eager ? static_cast<const void*>(send.source) : &offer);
    send.state = eager ? State::done : State::announced;
  }
  return true;
}

void Engine::stream_some(Peer& peer) {
  for (int i = 0; i < kPartsAtOnce && !peer.to_stream.empty(); ++i) {
    Operation& send = peer.to_stream.front();
    const std::uint64_t there = bytes_there(send);
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(there - send.moved, part_bytes_));
    if (part == 0 && send.bytes > 0) {  // the others need not wait for what fills it
      peer.to_stream.pop();
      peer.to_stream.push(send);
      continue;
    }
    if (!peer.out.fits(part)) return;
    put(peer, {.kind = FrameKind::data, .payload_bytes = static_cast<std::uint32_t>(part), .id = send.remote},
        send.source + send.moved);
    send.moved += part;
    if (send.moved < send.bytes) continue;
    peer.to_stream.pop();
    send.state = State::done;
  }
}

// A message that is still being filled cannot be read at once.
Offer Engine::offer_of(const Operation& send) const noexcept {
  if (send.filling || !OneCopy::may_be_faster(segment_.tuning(), send.bytes)) return {};
  return {.pid = ::getpid(),
          .proof_at = reinterpret_cast<std::uintptr_t>(&proof_),
          .proof = proof_,
          .data = reinterpret_cast<std::uintptr_t>(send.source)};
}

// Reads on, for a moment. Nobody writes to what is read before the sender has the answer, or its call has failed: it
// then has ended the group, or left it, before its user gets the memory back. So what was read counts if neither has
// happened after that, as in lending.hpp.
void Engine::read_some(Peer& peer) {
  Operation& receive = peer.to_read.front();
  if (receive.moved < receive.bytes) {
    const std::size_t got = peer.one_copy.read(receive.offered + receive.moved, receive.target + receive.moved,
                                               receive.bytes - receive.moved);
    receive.moved += got;
    if (got == 0) {  // the sender streams it, from the beginning
      peer.to_read.pop();
      receive.moved = 0;
      peer.to_clear.push(receive);
      push_out(peer);
      if (!peer.to_read.empty()) ring(rank_);
      return;
    }
    if (receive.moved < receive.bytes) return ring(rank_);  // who sleeps now would not go on
  }
  if (segment_.ending_after_reads() || segment_.place(peer.rank).left.load(std::memory_order_seq_cst) != 0) return;
  if (!peer.out.fits(0)) return;
  peer.to_read.pop();
  put(peer, {.kind = FrameKind::taken, .id = receive.remote});
  receive.state = State::done;
  peer.one_copy.ended(&receive);
  if (!peer.to_read.empty()) ring(rank_);
}

std::uint64_t Engine::bytes_there(Operation& send) noexcept {
  if (!send.filling) return send.bytes;
  const auto filling = filling_.find(send.ticket);
  const std::uint64_t there = std::max(filling->second(), send.moved);
  if (there == send.bytes) {
    filling_.erase(filling);
    send.filling = false;
  }
  return there;
}

// ---- In

void Engine::take_in(Peer& peer) {
  // One ring at a time: a peer that never stops sending must not keep the others waiting. Not less: of a peer that has
  // left, nothing may be missing then.
  for (std::uint64_t left = ring_bytes_; left > 0 && peer.in.is_there();) {
    const FrameHeader header = peer.in.front();
    take(peer, header);
    pop(peer, header);
    left -= std::min<std::uint64_t>(left, frame_bytes(header.payload_bytes));
  }
}

void Engine::pop(Peer& peer, const FrameHeader& header) noexcept {
  peer.in.pop(header);
  // Early enough for the peer to go on writing, not so often that the line moves between the caches for each frame. A
  // part of the ring that the peer does not get back yet never keeps it from sending: the largest frame is smaller
  // than the rest.
  if (peer.in.unreleased() < ring_bytes_ / 8) return;
  peer.in.release();
  ring(peer.rank);
}

void Engine::take(Peer& peer, const FrameHeader& header) {
  switch (header.kind) {
    case FrameKind::eager:
      return take_eager(peer, header);
    case FrameKind::request:
      return take_request(peer, header);
    case FrameKind::clear:
      return take_clear(peer, header);
    case FrameKind::taken:
      return take_taken(peer, header);
    case FrameKind::data:
      return take_data(peer, header);
    case FrameKind::none:
      break;
  }
  throw Error(ErrorCode::internal,
              fmt::format("shm: a frame of unknown kind {} from rank {}: something has overwritten the shared memory",
                          static_cast<std::uint32_t>(header.kind), names_.of(peer.rank)),
              {}, names_.of(peer.rank));
}

Operation* Engine::take_receive(int from, const FrameHeader& header) {
  Operation* const receive = receives_.take(
      header.slot, [from](const Operation& candidate) { return candidate.peer == kAnyPeer || candidate.peer == from; });
  if (receive != nullptr) backend::require_equal(names_.of(from), header, *receive);
  return receive;
}

void Engine::take_eager(Peer& peer, const FrameHeader& header) {
  if (Operation* const receive = take_receive(peer.rank, header)) {
    peer.in.read(receive->target, header.payload_bytes);
    receive->peer = peer.rank;
    receive->state = State::done;
    return;
  }
  Unexpected& message = unexpected_pool_.get(header.payload_bytes);
  message.peer = peer.rank;
  message.slot = header.slot;
  message.bytes = header.bytes;
  message.announced = false;
  peer.in.read(message.data.get(), header.payload_bytes);
  unexpected_.add(message);
}

void Engine::take_request(Peer& peer, const FrameHeader& header) {
  Offer offer;
  if (header.payload_bytes == sizeof offer) peer.in.read(&offer, sizeof offer);
  if (Operation* const receive = take_receive(peer.rank, header)) return begin_large(peer, *receive, header.id, offer);
  Unexpected& message = unexpected_pool_.get(0);
  message.peer = peer.rank;
  message.slot = header.slot;
  message.bytes = header.bytes;
  message.announced = true;
  message.remote = header.id;
  message.offer = offer;
  unexpected_.add(message);
}

void Engine::begin_large(Peer& peer, Operation& receive, std::uint64_t remote, const Offer& offer) {
  receive.peer = peer.rank;
  receive.remote = remote;
  receive.state = State::moving;
  if (offer.data != 0 && peer.one_copy.begin(&receive, offer, receive.bytes, segment_.tuning())) {
    receive.offered = offer.data;
    peer.to_read.push(receive);
    return;
  }
  peer.to_clear.push(receive);
  push_out(peer);
}

Operation& Engine::expect(const Peer& peer, const FrameHeader& header, bool sending) {
  Operation* const operation = operations_.find(header.id);
  const State state = sending ? State::announced : State::moving;
  if (operation != nullptr && operation->sending == sending && operation->peer == peer.rank &&
      operation->state == state && header.payload_bytes <= operation->bytes - operation->moved)
    return *operation;
  throw Error(ErrorCode::internal,
              fmt::format("shm: a frame from rank {} for a message that is not under way: something has overwritten "
                          "the shared memory",
                          names_.of(peer.rank)),
              {}, names_.of(peer.rank));
}

void Engine::take_clear(Peer& peer, const FrameHeader& header) {
  Operation& send = expect(peer, header, true);
  send.remote = header.slot;
  send.state = State::moving;
  peer.to_stream.push(send);
}

void Engine::take_taken(const Peer& peer, const FrameHeader& header) {
  expect(peer, header, true).state = State::done;
}

void Engine::take_data(Peer& peer, const FrameHeader& header) {
  Operation& receive = expect(peer, header, false);
  // Where the caches do not hold the two buffers, nobody finds this one in a cache.
  const bool is_beyond = 2 * receive.bytes > segment_.tuning().streamed;
  peer.in.read(receive.target + receive.moved, header.payload_bytes,
               is_beyond ? core::Stores::streaming : core::Stores::cached);
  receive.moved += header.payload_bytes;
  if (receive.moved < receive.bytes) return;
  receive.state = State::done;
  peer.one_copy.ended(&receive);
}

}  // namespace col::shm_backend

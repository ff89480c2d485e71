// How sends and receives pair: frames.hpp says what is said. Everything here is done under the context's mutex.
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <gloo/common/error.h>

#include "backend/gloo/transport.hpp"
#include "backend/match_table.hpp"

namespace col::gloo_backend {
namespace {

// What has to be equal of a message and its receive, in the words of backend/match_table.hpp.
struct Sort {
  std::uint64_t slot;
  std::size_t bytes;
};
template <class Either>
Sort sort_of(const Either& either) {
  return {either.content, either.bytes};
}

// The same, where the receive was there first.
void require_ready_for(int peer, const Operation& send, std::size_t bytes, Content content) {
  if (send.bytes == bytes && send.content == content) return;
  throw Error(ErrorCode::mismatch,
              fmt::format("rank {} receives {} bytes next{}, and {} are sent to it; a send and its recv must have the "
                          "same count and dtype",
                          peer, bytes, send.bytes == bytes ? " of another count or dtype" : "", send.bytes),
              {}, peer);
}

void require_buffer(const Operation& operation) {
  if (operation.buffer == nullptr) throw ::gloo::IoException("a message for which there is no buffer");
}

Frame frame_of(const Operation& message, Kind kind) {
  return {.line = message.line, .bytes = message.bytes, .kind = kind, .content = message.content};
}

[[noreturn]] void throw_nonsense() {
  throw ::gloo::IoException("the other side says what no rank of this version says");
}

}  // namespace

// True if a message is what that receive expects. If not, the receive fails.
template <class Message>
bool GuardedContext::fits(int peer, const Message& message, const OperationPtr& receive) {
  if (receive->has_failed) return false;
  try {
    backend::require_equal(peer, sort_of(message), sort_of(*receive));
    return true;
  } catch (const Error&) {
    fail(receive, std::current_exception());
    return false;
  }
}

// ---- What this rank posts

void GuardedContext::post_send(const OperationPtr& operation) {
  Peer& peer = peer_of(operation->peer);
  if (peer.failure != nullptr) std::rethrow_exception(peer.failure);
  const std::size_t bytes = operation->bytes;
  const auto line = peer.lines.find(operation->line);
  if (!is_large(bytes) && peer.kept_there + kept_bytes(bytes) <= kMostKeptBytes) {
    peer.kept_there += kept_bytes(bytes);
    put(peer, frame_of(*operation, Kind::eager), operation);
  } else if (line != peer.lines.end() && !line->second.ready.empty()) {
    const Frame ready = line->second.ready.front();
    line->second.ready.pop_front();
    try {
      require_ready_for(peer.rank, *operation, ready.bytes, ready.content);
    } catch (const Error&) {
      fail(operation, std::current_exception());
      throw;
    }
    forget_if_empty(peer, operation->line);
    put(peer, frame_of(*operation, Kind::data), operation);
  } else {
    peer.lines[operation->line].announced.push_back(operation);
    put(peer, frame_of(*operation, Kind::announce));
  }
  // A receive leaves it to the sender to connect: so there is mostly one who does.
  require_connection(peer);
}

void GuardedContext::post_recv(const OperationPtr& operation) {
  operation->order = received_++;
  if (const Arrival* const message = inbox_.message_for(*operation)) {
    if (!fits(message->peer, *message, operation)) std::rethrow_exception(mismatch_);
    return take(operation, inbox_.take(operation->line, message));
  }
  if (operation->peer < 0) return inbox_.add(operation);
  Peer& peer = peer_of(operation->peer);
  if (peer.failure != nullptr) std::rethrow_exception(peer.failure);
  if (is_large(operation->bytes)) return say_ready(peer, operation, false);
  inbox_.add(operation);
}

void GuardedContext::withdraw(const OperationPtr& operation) {
  operation->buffer = nullptr;
  if (!operation->sends) inbox_.remove(operation);
  // Of a message that has begun, there is no way to say that the rest does not come.
  if (!operation->moves || broken()) return;
  peer_of(operation->peer).is_unreachable = true;  // for this rank: nobody else is to hear that it is lost
  close(peer_of(operation->peer), io_failure("the buffer of a message in transfer is gone"));
}

void GuardedContext::say_ready(Peer& peer, const OperationPtr& receive, bool is_announced) {
  receive->peer = peer.rank;
  receive->is_ready = true;
  Line& line = peer.lines[receive->line];
  line.expected.push_back(receive);
  if (is_announced) ++line.covered;
  put(peer, frame_of(*receive, Kind::ready));
  if (is_announced && !is_large(receive->bytes)) say_taken(peer);
}

void GuardedContext::note_taken(int peer, std::size_t bytes) {
  Peer& from = peer_of(peer);
  from.unsaid += kept_bytes(bytes);
  if (from.unsaid > kMostUnsaidBytes) say_taken(from);
}

void GuardedContext::say_taken(Peer& peer) {
  const std::size_t bytes = std::exchange(peer.unsaid, 0);
  if (bytes > 0 && peer.failure == nullptr) put(peer, {.bytes = bytes, .kind = Kind::taken});
}

void GuardedContext::take(const OperationPtr& receive, Arrival arrival) {
  receive->peer = arrival.peer;
  if (!arrival.is_here) return say_ready(peer_of(arrival.peer), receive, true);
  if (arrival.bytes > 0) std::memcpy(receive->data, arrival.kept.get(), arrival.bytes);
  note_taken(arrival.peer, arrival.bytes);
  complete(receive, arrival.peer);
}

void GuardedContext::complete(const OperationPtr& operation, int peer) {
  operation->moves = false;
  has_news_ = true;
  if (operation->buffer != nullptr) operation->buffer->complete(operation, peer);
}

// The oldest receive of a slot that takes a message of this peer and has none yet, or null.
OperationPtr GuardedContext::next_receive(const Peer& from, std::uint64_t line) const {
  OperationPtr next = inbox_.receive_for(from.rank, line);
  const auto large = from.lines.find(line | kLargeBit);
  if (large == from.lines.end() || large->second.expected.size() <= large->second.covered) return next;
  const OperationPtr& ready = large->second.expected[large->second.covered];
  return next == nullptr || ready->order < next->order ? ready : next;
}

// The first is told in every wait, whatever that is for: who waits for another message may be the one that is waited
// for.
void GuardedContext::fail(const OperationPtr& operation, const std::exception_ptr& mismatch) {
  has_news_ = true;
  operation->has_failed = true;
  if (mismatch_ == nullptr) mismatch_ = mismatch;
  for (GuardedBuffer* const buffer : buffers_) buffer->fail_if_unfinished(mismatch_);
}

void GuardedContext::forget_if_empty(Peer& peer, std::uint64_t line) {
  const auto found = peer.lines.find(line);
  if (found != peer.lines.end() && found->second.is_empty()) peer.lines.erase(found);
}

// ---- What a connection tells

Payload GuardedContext::place_for(int peer, const Frame& frame) {
  if (frame.kind == Kind::eager) {
    if (is_large(frame.bytes)) throw_nonsense();
    const OperationPtr receive = next_receive(peer_of(peer), frame.line);
    if (receive == nullptr || !fits(peer, frame, receive))
      return {.kept = std::make_unique_for_overwrite<char[]>(frame.bytes)};
    receive->peer = peer;
    inbox_.remove(receive);
    receive->moves = true;
    return {.operation = receive};
  }
  Peer& from = peer_of(peer);
  const auto line = from.lines.find(frame.line);
  if (line == from.lines.end() || line->second.expected.empty()) throw_nonsense();
  const OperationPtr receive = line->second.expected.front();
  require_buffer(*receive);
  if (receive->bytes != frame.bytes) throw_nonsense();  // the sender looks
  // It was not announced, so it has not been held against a small receive before this one.
  const OperationPtr small = frame.kind == Kind::data ? inbox_.receive_for(peer, frame.line) : nullptr;
  if (small != nullptr && small->order < receive->order) (void)fits(peer, frame, small);
  line->second.expected.pop_front();
  if (frame.kind == Kind::announced_data) {
    if (line->second.covered == 0) throw_nonsense();
    --line->second.covered;
  }
  forget_if_empty(from, frame.line);
  receive->moves = true;
  return {.operation = receive};
}

void GuardedContext::arrived(int peer, const Frame& frame, Payload payload) {
  Peer& from = peer_of(peer);
  switch (frame.kind) {
    case Kind::eager:
      if (payload.operation == nullptr) return hear_message(peer, frame, std::move(payload.kept));
      note_taken(peer, frame.bytes);
      return complete(payload.operation, peer);
    case Kind::data:
    case Kind::announced_data:
      return complete(payload.operation, peer);
    case Kind::announce:
      return hear_message(peer, frame, nullptr);
    case Kind::ready:
      return hear_ready(from, frame);
    case Kind::taken:
      return hear_taken(from, frame);
    case Kind::left:
    case Kind::lost:
    case Kind::host_lost:
      return hear(frame, peer);
    case Kind::alive:
      return from.pulse.hear(Lobby::Clock::now());
  }
  throw_nonsense();
}

void GuardedContext::hear_message(int peer, const Frame& frame, std::unique_ptr<char[]> content) {
  Arrival arrival{.peer = peer,
                  .bytes = frame.bytes,
                  .content = frame.content,
                  .is_here = frame.kind == Kind::eager,
                  .kept = std::move(content)};
  Peer& from = peer_of(peer);
  const OperationPtr receive = next_receive(from, frame.line);
  if (receive == nullptr || !fits(peer, frame, receive)) return inbox_.add(frame.line, std::move(arrival));
  if (receive->is_ready) {  // its ready is under way, and the answer
    ++from.lines[frame.line].covered;
    return;
  }
  inbox_.remove(receive);
  take(receive, std::move(arrival));
}

void GuardedContext::hear_ready(Peer& peer, const Frame& frame) {
  Line& line = peer.lines[frame.line];
  if (line.announced.empty()) {
    line.ready.push_back(frame);
    return;
  }
  const OperationPtr operation = line.announced.front();
  require_buffer(*operation);
  line.announced.pop_front();
  forget_if_empty(peer, frame.line);
  try {
    require_ready_for(peer.rank, *operation, frame.bytes, frame.content);
  } catch (const Error&) {
    return fail(operation, std::current_exception());
  }
  put(peer, frame_of(*operation, Kind::announced_data), operation);
}

void GuardedContext::hear_taken(Peer& peer, const Frame& frame) {
  if (frame.bytes > peer.kept_there) throw_nonsense();
  peer.kept_there -= frame.bytes;
}

void GuardedContext::written(const OperationPtr& operation) {
  complete(operation, operation->peer);
}

}  // namespace col::gloo_backend

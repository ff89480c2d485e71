// How sends and receives pair: frames.hpp says what is said. Everything here is done under the context's mutex.
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <gloo/common/error.h>

#include "backend/gloo/transport.hpp"

namespace col::gloo_backend {
namespace {

// By hand, as the channel never lets two lengths share a slot.
void require_length(const Operation& receive, std::size_t bytes) {
  if (receive.bytes == bytes) return;
  throw ::gloo::IoException(fmt::format("a message of {} bytes for a buffer of {}", bytes, receive.bytes));
}

void require_buffer(const Operation& operation) {
  if (operation.buffer == nullptr) throw ::gloo::IoException("a message for which there is no buffer");
}

[[noreturn]] void throw_nonsense() {
  throw ::gloo::IoException("the other side says what no rank of this version says");
}

}  // namespace

// ---- What this rank posts

void GuardedContext::post_send(const OperationPtr& operation) {
  Peer& peer = peer_of(operation->peer);
  if (peer.failure != nullptr) std::rethrow_exception(peer.failure);
  const std::size_t bytes = operation->bytes;
  Line& line = peer.lines[operation->line];
  if (is_large(bytes) && line.ready > 0) {
    --line.ready;
    forget_if_empty(peer, operation->line);
    put(peer, {.line = operation->line, .bytes = bytes, .kind = Kind::data}, operation);
  } else if (!is_large(bytes) && peer.untaken_bytes + bytes <= kMostUntakenBytes) {
    peer.untaken_bytes += bytes;
    line.untaken.push_back(operation);
    put(peer, {.line = operation->line, .bytes = bytes, .kind = Kind::eager}, operation);
  } else {
    line.announced.push_back(operation);
    put(peer, {.line = operation->line, .bytes = bytes, .kind = Kind::announce});
  }
  // A receive leaves it to the sender to connect: so there is mostly one who does.
  require_connection(peer);
}

void GuardedContext::post_recv(const OperationPtr& operation) {
  if (auto arrival = inbox_.take_for(*operation)) return take(operation, *std::move(arrival));
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
  close(peer_of(operation->peer), io_failure("the buffer of a message in transfer is gone"));
}

void GuardedContext::say_ready(Peer& peer, const OperationPtr& receive, bool is_announced) {
  receive->peer = peer.rank;
  Line& line = peer.lines[receive->line];
  line.expected.push_back(receive);
  if (is_announced) ++line.covered;
  put(peer, {.line = receive->line, .bytes = receive->bytes, .kind = Kind::ready});
}

void GuardedContext::say_taken(int peer, std::uint64_t line, std::size_t bytes) {
  if (Peer& from = peer_of(peer); from.failure == nullptr)
    put(from, {.line = line, .bytes = bytes, .kind = Kind::taken});
}

void GuardedContext::take(const OperationPtr& receive, Arrival arrival) {
  receive->peer = arrival.peer;
  try {
    require_length(*receive, arrival.bytes);
  } catch (...) {
    return close(peer_of(arrival.peer), std::current_exception());
  }
  if (!arrival.is_here) return say_ready(peer_of(arrival.peer), receive, true);
  if (arrival.bytes > 0) std::memcpy(receive->data, arrival.content.get(), arrival.bytes);
  say_taken(arrival.peer, receive->line, arrival.bytes);
  complete(receive, arrival.peer);
}

void GuardedContext::complete(const OperationPtr& operation, int peer) {
  operation->moves = false;
  has_news_ = true;
  if (operation->buffer != nullptr) operation->buffer->complete(operation, peer);
}

void GuardedContext::forget_if_empty(Peer& peer, std::uint64_t line) {
  const auto found = peer.lines.find(line);
  if (found != peer.lines.end() && found->second.is_empty()) peer.lines.erase(found);
}

// ---- What a connection tells

Payload GuardedContext::place_for(int peer, const Frame& frame) {
  if (frame.kind == Kind::eager) {
    if (is_large(frame.bytes)) throw_nonsense();
    const OperationPtr receive = inbox_.receive_for(peer, frame.line);
    if (receive == nullptr) return {.kept = std::make_unique_for_overwrite<char[]>(frame.bytes)};
    receive->peer = peer;
    require_length(*receive, frame.bytes);
    inbox_.remove(receive);
    receive->moves = true;
    return {.operation = receive};
  }
  Peer& from = peer_of(peer);
  const auto line = from.lines.find(frame.line);
  if (line == from.lines.end() || line->second.expected.empty()) throw_nonsense();
  const OperationPtr receive = line->second.expected.front();
  require_buffer(*receive);
  require_length(*receive, frame.bytes);
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
      say_taken(peer, frame.line, frame.bytes);
      return complete(payload.operation, peer);
    case Kind::data:
    case Kind::announced_data:
      return complete(payload.operation, peer);
    case Kind::announce: {
      const auto line = from.lines.find(frame.line);
      // One that meets a ready which is under way gets its answer by that.
      if (line != from.lines.end() && line->second.expected.size() > line->second.covered) {
        ++line->second.covered;
        return;
      }
      return hear_message(peer, frame, nullptr);
    }
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
  Arrival arrival{
      .peer = peer, .bytes = frame.bytes, .is_here = frame.kind == Kind::eager, .content = std::move(content)};
  const OperationPtr receive = inbox_.receive_for(peer, frame.line);
  if (receive == nullptr) return inbox_.add(frame.line, std::move(arrival));
  receive->peer = peer;
  require_length(*receive, frame.bytes);
  inbox_.remove(receive);
  take(receive, std::move(arrival));
}

void GuardedContext::hear_ready(Peer& peer, const Frame& frame) {
  Line& line = peer.lines[frame.line];
  if (line.announced.empty()) {
    ++line.ready;
    return;
  }
  const OperationPtr operation = line.announced.front();
  require_buffer(*operation);
  line.announced.pop_front();
  forget_if_empty(peer, frame.line);
  put(peer, {.line = frame.line, .bytes = operation->bytes, .kind = Kind::announced_data}, operation);
}

void GuardedContext::hear_taken(Peer& peer, const Frame& frame) {
  const auto line = peer.lines.find(frame.line);
  if (line == peer.lines.end() || line->second.untaken.empty()) throw_nonsense();
  const OperationPtr operation = line->second.untaken.front();
  line->second.untaken.pop_front();
  forget_if_empty(peer, frame.line);
  peer.untaken_bytes -= operation->bytes;
  complete(operation, peer.rank);
}

void GuardedContext::written(const Frame& frame, const OperationPtr& operation) {
  operation->moves = false;
  if (frame.kind != Kind::eager) complete(operation, operation->peer);
}

}  // namespace col::gloo_backend

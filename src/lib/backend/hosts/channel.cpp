#include "backend/hosts/channel.hpp"

#include <new>
#include <utility>

#include <fmt/format.h>

#include "backend/far_wait.hpp"

namespace col::hosts_backend {
namespace {

constexpr std::uint64_t stream_of(std::uint64_t slot) noexcept {
  return slot & ~kSlotContent;
}

template <class Ops>
Ops* required(Ops* ops, const std::string& group) {
  if (ops != nullptr) return ops;
  throw Error(ErrorCode::internal, "hosts: that backend cannot be a side of a group over hosts", group);
}

std::string what_is_awaited(bool sending, int peer) {
  if (sending) return fmt::format("rank {} to receive what was sent to it", peer);
  if (peer == kAnyPeer) return "data from any rank";
  return fmt::format("data from rank {}", peer);
}

}  // namespace

HostsChannel::HostsChannel(std::string group, Layout layout, std::unique_ptr<Channel> near,
                           std::unique_ptr<Channel> wire)
    : Channel({.immediate = this, .drafts = this}),
      group_(std::move(group)),
      layout_(std::move(layout)),
      near_(std::move(near)),
      wire_(std::move(wire)),
      near_side_(near_ != nullptr ? required(near_->can().near, group_) : nullptr),
      wire_side_(required(wire_->can().wire, group_)),
      near_immediate_(near_ != nullptr ? near_->can().immediate : nullptr) {
  for (std::size_t place = 0; place < layout_.near.size(); ++place) {
    if (layout_.near[place] != layout_.rank) neighbours_.push_back(static_cast<int>(place));
  }
  if (near_side_ != nullptr) wire_side_->on_change([near = near_side_] { near->ring(); });
}

HostsChannel::~HostsChannel() {
  if (fork_guard_.is_forked_child()) return;
  wire_side_->on_change({});
}

void HostsChannel::enter(const char* call) const {
  if (fork_guard_.is_forked_child()) backend::throw_forked(call, group_);
  cause_.check(call, group_);
}

void HostsChannel::check_peer(const char* call, int peer) const {
  backend::check_peer(call, peer, layout_.rank, layout_.size(), group_);
}

Operation& HostsChannel::find(Ticket ticket) {
  if (Operation* const operation = operations_.find(ticket)) return *operation;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("hosts: ticket {:#x} is not in use; a ticket ends when test() returns a peer, or wait() returns",
                  ticket.id),
      group_);
}

// What breaks one side breaks both, so that every rank learns of it at once.
template <class Body>
auto HostsChannel::guarded(Body body) {
  try {
    return body();
  } catch (const Error& error) {
    abort(error);
  } catch (const std::bad_alloc&) {
    abort(Error(ErrorCode::resource, "hosts: out of memory for messages; free some", group_));
  }
  throw cause_.get();
}

// ---- Messages

Side HostsChannel::side_of(int peer) const noexcept {
  return near_ != nullptr && layout_.place_of(peer) >= 0 ? Side::near : Side::wire;
}

bool HostsChannel::may_come_from_both(int peer) const noexcept {
  return peer == kAnyPeer && near_ != nullptr && !layout_.far.empty();
}

Ticket HostsChannel::post_send(int peer, std::uint64_t slot, ConstTensorView data) {
  enter("post_send");
  check_peer("post_send", peer);
  return guarded([&] {
    const Side side = side_of(peer);
    const Ticket ticket = channel(side).post_send(side == Side::near ? layout_.place_of(peer) : peer, slot, data);
    Operation& operation = operations_.add();
    operation.state = Operation::State::posted;
    operation.side = side;
    operation.sending = true;
    operation.peer = peer;
    operation.ticket = ticket;
    operation.bytes = data.bytes();
    return Ticket{operation.id};
  });
}

Ticket HostsChannel::post_recv(int peer, std::uint64_t slot, TensorView data) {
  enter("post_recv");
  if (peer != kAnyPeer || layout_.size() == 1) check_peer("post_recv", peer);
  return guarded([&] {
    Operation& receive = operations_.add();
    receive.state = Operation::State::in_line;
    receive.peer = peer;
    receive.slot = slot;
    receive.data = data;
    receive.bytes = data.bytes();
    const auto line = lines_.find(stream_of(slot));
    if (line != lines_.end()) {
      line->second.push_back(&receive);
    } else if (may_come_from_both(peer)) {
      lines_[stream_of(slot)].push_back(&receive);
    } else if (peer == kAnyPeer) {
      post(receive, near_ != nullptr ? Side::near : Side::wire, peer);
    } else {
      post(receive, side_of(peer), peer);
    }
    return Ticket{receive.id};
  });
}

// What breaks this channel breaks both sides: they say whether they can be used.
bool HostsChannel::send_immediate(int peer, std::uint64_t slot, ConstTensorView data) noexcept {
  return near_immediate_ != nullptr && side_of(peer) == Side::near &&
         near_immediate_->send_immediate(layout_.place_of(peer), slot, data);
}

bool HostsChannel::receive_immediate(int peer, std::uint64_t slot, TensorView data) noexcept {
  return near_immediate_ != nullptr && side_of(peer) == Side::near &&
         near_immediate_->receive_immediate(layout_.place_of(peer), slot, data);
}

void HostsChannel::post(Operation& receive, Side side, int peer) {
  const int number = side == Side::near && peer != kAnyPeer ? layout_.place_of(peer) : peer;
  receive.ticket = channel(side).post_recv(number, receive.slot, receive.data);
  receive.side = side;
  receive.peer = peer;
  receive.state = Operation::State::posted;
}

// ---- Receives that may come over either side

void HostsChannel::serve_lines() {
  for (auto line = lines_.begin(); line != lines_.end();) {
    if (serve(line->second))
      line = lines_.erase(line);
    else
      ++line;
  }
}

// Returns whether nothing is left of it.
bool HostsChannel::serve(std::deque<Operation*>& line) {
  while (!line.empty()) {
    Operation& receive = *line.front();
    if (receive.peer != kAnyPeer)
      post(receive, side_of(receive.peer), receive.peer);
    else if (!serve_first(receive))
      return false;
    line.pop_front();
  }
  return true;
}

// For one from any peer: takes the message that waits longest on a side. Returns whether there was one.
bool HostsChannel::serve_first(Operation& receive) {
  wire_first_ = !wire_first_;
  bool all_left = true;
  for (const Side side : {wire_first_ ? Side::wire : Side::near, wire_first_ ? Side::near : Side::wire}) {
    const auto probed = side == Side::near ? near_side_->probe(neighbours_, receive.slot, receive.data.bytes())
                                           : wire_side_->probe(layout_.far, receive.slot, receive.data.bytes());
    if (probed.peer >= 0) {
      post(receive, side, side == Side::near ? layout_.near[static_cast<std::size_t>(probed.peer)] : probed.peer);
      return true;
    }
    all_left = all_left && probed.all_left;
  }
  if (!all_left) return false;
  const int last = layout_.far.back();
  throw Error(ErrorCode::peer_lost,
              fmt::format("all other ranks have left the group while this rank waits for {}; every rank must make the "
                          "same calls before it destroys the group",
                          what_is_awaited(false, kAnyPeer)),
              group_, last);
}

// ---- Waiting

int HostsChannel::peer_of(const Operation& operation, int peer) const noexcept {
  return operation.side == Side::near ? layout_.near[static_cast<std::size_t>(peer)] : peer;
}

// Whether to look at the wire now, for a rank that waits for neighbours. A look is a system call, many times as long as
// one at shared memory; a wire that moves by itself does not need it.
bool HostsChannel::attends_wire() {
  constexpr int kLooksPerCall = 8;
  return !wire_side_->moves_by_itself() && ++looks_ % kLooksPerCall == 0;
}

// Whether a message is not worth polling for (far_wait.hpp).
bool HostsChannel::is_long_in_coming(const Operation& operation) const {
  return operation.state == Operation::State::posted && operation.side == Side::wire &&
         operation.bytes > backend::kMostPolledBytes && wire_side_->moves_by_itself();
}

// The peer when the operation has ended. Moves on everything on both sides.
std::optional<int> HostsChannel::step(Operation& operation) {
  if (cause_.is_set()) throw cause_.get();
  if (!lines_.empty()) serve_lines();
  const auto is_on = [&](Side side) { return operation.state == Operation::State::posted && operation.side == side; };
  if (near_side_ != nullptr && !is_on(Side::near)) near_side_->progress();
  const bool is_in_line = operation.state == Operation::State::in_line;
  if (is_in_line || (!is_on(Side::wire) && attends_wire())) wire_side_->progress();
  if (is_in_line) return std::nullopt;
  const auto peer = channel(operation.side).test(operation.ticket);
  if (!peer) return std::nullopt;
  return peer_of(operation, *peer);
}

std::optional<int> HostsChannel::test(Ticket ticket) {
  enter("test");
  Operation& operation = find(ticket);
  return guarded([&] {
    const auto peer = step(operation);
    if (peer) operations_.remove(operation);
    return peer;
  });
}

void HostsChannel::tell(const Operation& operation, WaitContext& wait) const {
  wait.describe([sending = operation.sending, peer = operation.peer] { return what_is_awaited(sending, peer); });
  wait.waiting(-1, operation.peer);
}

int HostsChannel::wait(Ticket ticket, WaitContext& wait) {
  enter("wait");
  Operation& operation = find(ticket);
  return guarded([&] {
    int peer = -1;
    if (near_side_ == nullptr) {
      peer = wire_->wait(operation.ticket, wait);
    } else {
      const auto look = [&] {
        const auto ended = step(operation);
        if (ended) peer = *ended;
        return ended.has_value();
      };
      const auto say = [&](WaitContext& context) { tell(operation, context); };
      const auto may_sleep = [&] { return wire_side_->may_sleep(); };
      near_side_->wait_until({.look = std::ref(look),
                              .tell = std::ref(say),
                              .from_far = is_long_in_coming(operation),
                              .may_sleep = std::ref(may_sleep)},
                             wait);
    }
    operations_.remove(operation);
    return peer;
  });
}

// ---- Collectives, and the end

Ticket HostsChannel::start_native(const Request& request, WaitContext& /*wait*/) {
  throw Error(ErrorCode::unavailable,
              fmt::format("hosts: backend hosts has no collectives of its own, not '{}'", request.algorithm), group_);
}

void HostsChannel::abort(const Error& cause) noexcept {
  if (fork_guard_.is_forked_child()) return;
  cause_.set(cause);
  // Neighbours hear the reason, ranks of other hosts that the connection closes.
  if (near_ != nullptr) near_->abort(cause);
  wire_->abort(cause);
}

}  // namespace col::hosts_backend

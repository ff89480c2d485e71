#include "plan/simulation/ports.hpp"

#include <algorithm>
#include <utility>

namespace col::plan::simulation {
namespace {

// A step from one waiting message to the next is a miss of the cache; to ask a free port is a look at a short row. So a
// port asks at once when it has found nothing in about the time that asking takes. Both ways find the same message.
constexpr std::size_t kAskedPerStep = 32;

}  // namespace

Ports::Ports(const std::vector<std::uint32_t>& circles, MessagePool& messages)
    : messages_(messages), sizes_(1 + *std::max_element(circles.begin(), circles.end())) {
  for (const std::uint32_t circle : circles) {
    const std::uint32_t index = sizes_[circle]++;
    for (std::vector<Port>& side : ports_) side.push_back({.circle = circle, .index = index});
  }
  for (auto& side : idle_) side.resize(sizes_.size());
}

void Ports::wait(std::uint32_t id) {
  Message& message = messages_[id];
  Waiting queue;
  for (const Side side : {kOut, kIn}) {
    Port& there = port(side, message);
    message.previous[side] = there.last;
    (there.last == kNoMessage ? there.first : messages_[there.last].next[side]) = id;
    there.last = id;
    note(side, message.port[side]);
    if (there.by_peer.empty()) there.by_peer.resize(sizes_[there.circle]);
    queue = waiting(side, message);
    const bool is_first = queue.first == kNoMessage;
    waiting(side, message) = {is_first ? message.order : queue.order, is_first ? id : queue.first, id};
  }
  if (queue.first != kNoMessage) messages_[queue.last].next_of_pair = id;
}

std::uint32_t Ports::take_next(Side side, std::uint32_t port) {
  const std::uint32_t id = find_next(side, port);
  if (id != kNoMessage) {
    stop_waiting(id);
    take(id);
  }
  return id;
}

std::uint32_t Ports::find_next(Side side, std::uint32_t port) {
  const Side other = side == kOut ? kIn : kOut;
  const Port& own = ports_[side][port];
  const std::vector<Idle>& idle = idle_[other][own.circle];
  if (own.busy || idle.empty()) return kNoMessage;
  std::uint32_t id = own.first;
  for (std::size_t left = 1 + idle.size() / kAskedPerStep; id != kNoMessage; --left) {
    if (!this->port(other, messages_[id]).busy) return id;
    if (left == 0) break;
    id = messages_[id].next[side];
  }
  if (id == kNoMessage) return kNoMessage;
  const Waiting none;
  const Waiting* best = &none;
  for (const Idle& peer : idle) {
    const Waiting& found = own.by_peer[peer.index];
    if (found.order < best->order) best = &found;
  }
  return best->first;
}

void Ports::stop_waiting(std::uint32_t id) {
  Message& message = messages_[id];
  for (const Side side : {kOut, kIn}) {
    Port& there = port(side, message);
    const std::uint32_t before = message.previous[side];
    const std::uint32_t after = message.next[side];
    (before == kNoMessage ? there.first : messages_[before].next[side]) = after;
    (after == kNoMessage ? there.last : messages_[after].previous[side]) = before;
    note(side, message.port[side]);
  }
  // The first of its pair: those behind it wait for the same two ports.
  const std::uint32_t next = std::exchange(message.next_of_pair, kNoMessage);
  for (const Side side : {kOut, kIn}) {
    Waiting& queue = waiting(side, message);
    queue = next == kNoMessage ? Waiting{} : Waiting{messages_[next].order, next, queue.last};
  }
}

// Puts the port into idle_, or takes it out, as it is now.
void Ports::note(Side side, std::uint32_t port) {
  Port& there = ports_[side][port];
  std::vector<Idle>& idle = idle_[side][there.circle];
  const bool is_idle = !there.busy && there.first != kNoMessage;
  if (is_idle == (there.place != kNowhere)) return;
  if (is_idle) {
    there.place = static_cast<std::uint32_t>(idle.size());
    idle.push_back({port, there.index});
  } else {
    idle[there.place] = idle.back();
    ports_[side][idle.back().port].place = there.place;
    idle.pop_back();
    there.place = kNowhere;
  }
}

}  // namespace col::plan::simulation

#include "plan/simulation/ports.hpp"

namespace col::plan::simulation {

void Ports::wait(std::uint32_t id) {
  Message& message = messages_[id];
  for (const Side side : {kOut, kIn}) {
    Port& there = port(side, message);
    message.previous[side] = there.last;
    (there.last == kNoMessage ? there.first : messages_[there.last].next[side]) = id;
    there.last = id;
    note(side, message.port[side]);
  }
  PairQueue& pair = waiting_.at(PairTable::key(message.port[kOut], message.port[kIn]));
  const bool is_first = pair.first == kNoMessage;
  (is_first ? pair.first : messages_[pair.last].next_of_pair) = id;
  pair.last = id;
  if (is_first) waiting_.added();
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
  if (ports_[side][port].busy) return kNoMessage;
  const Side other = side == kOut ? kIn : kOut;
  std::uint32_t id = ports_[side][port].first;
  std::uint32_t best = kNoMessage;
  for (const std::uint32_t peer : idle_[other]) {
    if (id == kNoMessage || !this->port(other, messages_[id]).busy) return id;
    id = messages_[id].next[side];
    const std::uint32_t found = waiting_.first(side == kOut ? PairTable::key(port, peer) : PairTable::key(peer, port));
    if (found != kNoMessage && (best == kNoMessage || messages_[found].order < messages_[best].order)) best = found;
  }
  return best;
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
  PairQueue& pair = waiting_.at(PairTable::key(message.port[kOut], message.port[kIn]));
  pair.first = message.next_of_pair;
  message.next_of_pair = kNoMessage;
  if (pair.first == kNoMessage) waiting_.erase(pair);
}

// Puts the port into idle_, or takes it out, as it is now.
void Ports::note(Side side, std::uint32_t port) {
  Port& there = ports_[side][port];
  std::vector<std::uint32_t>& idle = idle_[side];
  const bool is_idle = !there.busy && there.first != kNoMessage;
  if (is_idle == (there.place != kNowhere)) return;
  if (is_idle) {
    there.place = static_cast<std::uint32_t>(idle.size());
    idle.push_back(port);
  } else {
    idle[there.place] = idle.back();
    ports_[side][idle.back()].place = there.place;
    idle.pop_back();
    there.place = kNowhere;
  }
}

}  // namespace col::plan::simulation

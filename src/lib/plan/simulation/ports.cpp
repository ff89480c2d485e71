#include "plan/simulation/ports.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace col::plan::simulation {
namespace {

// So many of the first in the list are tried one by one. Both ways find the same message.
constexpr int kTried = 4;
// So many of the others are asked for before.
constexpr int kAskedFor = 32;

}  // namespace

void MessagePool::add_chunk() {
  void* const memory = std::aligned_alloc(kChunkBytes, kChunkBytes);
  if (memory == nullptr) throw std::bad_alloc();
  // Not the first: to clear a large page takes longer than a small simulation. Refused, it works as well.
  if (!chunks_.empty()) ::madvise(memory, kChunkBytes, MADV_HUGEPAGE);
  chunks_.emplace_back(static_cast<Message*>(memory));
}

Ports::Ports(const std::vector<std::uint32_t>& circles, MessagePool& messages)
    : messages_(messages), circles_(1 + *std::max_element(circles.begin(), circles.end())) {
  for (std::uint32_t port = 0; port < circles.size(); ++port) {
    std::vector<std::uint32_t>& circle = circles_[circles[port]];
    seats_.push_back({.circle = circles[port], .index = static_cast<std::uint32_t>(circle.size())});
    circle.push_back(port);
  }
  for (const Side side : {kOut, kIn}) {
    ports_[side].resize(circles.size());
    busy_[side].resize(circles.size());
    for (const auto& circle : circles_) {
      free_[side].emplace_back((circle.size() + kBits - 1) / kBits);
      free_words_[side].emplace_back((free_[side].back().size() + kBits - 1) / kBits);
    }
    for (const Seat& seat : seats_) {
      const std::uint32_t word = seat.index / kBits;
      free_[side][seat.circle][word] |= bit(seat.index);
      free_words_[side][seat.circle][word / kBits] |= bit(word);
    }
  }
}

void Ports::wait(std::uint32_t id) {
  Message& message = messages_[id];
  message.last_of_pair = id;
  for (const Side side : {kOut, kIn}) {
    Port& port = ports_[side][message.port[side]];
    const Seat peer = seats_[message.port[other(side)]];
    message.place[side] = port.waiting.push(message.port[other(side)]);
    if (port.peers.empty()) {
      port.peers.resize(free_[side][peer.circle].size());
      port.first_of_pair.resize(circles_[peer.circle].size());
      port.first_place.resize(circles_[peer.circle].size());
    }
    std::uint64_t& peers = port.peers[peer.index / kBits];
    if ((peers & bit(peer.index)) == 0) {
      peers |= bit(peer.index);
      port.first_of_pair[peer.index] = id;
      port.first_place[peer.index] = message.place[side];
    } else if (side == kOut) {
      const std::uint32_t last = std::exchange(messages_[port.first_of_pair[peer.index]].last_of_pair, id);
      messages_[last].next_of_pair = id;
    }
  }
}

std::optional<Ports::Taken> Ports::take_next(Side side, std::uint32_t port) {
  const std::uint32_t peer = find_next(side, port);
  if (peer == kNowhere) return std::nullopt;
  set_busy(side, port, true);
  set_busy(other(side), peer, true);
  return side == kOut ? Taken{port, peer} : Taken{peer, port};
}

// The next of the pair, if there is one, is then its first.
std::uint32_t Ports::finish(const Taken& taken) {
  const std::uint32_t id = first_of_pair(taken);
  const Message& message = messages_[id];
  const std::uint32_t next = message.next_of_pair;
  if (next != kNoMessage) messages_[next].last_of_pair = message.last_of_pair;
  for (const Side side : {kOut, kIn}) {
    Port& port = ports_[side][taken[side]];
    const std::uint32_t peer = seats_[taken[other(side)]].index;
    port.waiting.remove(message.place[side]);
    if (next == kNoMessage) {
      port.peers[peer / kBits] &= ~bit(peer);
    } else {
      port.first_of_pair[peer] = next;
      port.first_place[peer] = messages_[next].place[side];
    }
  }
  return id;
}

void Ports::prefetch_finish(const Taken& taken, int stage) noexcept {
  if (stage == 1) simulation::prefetch(&ports_[kOut][taken[kOut]].first_of_pair[seats_[taken[kIn]].index]);
  if (stage == 2) messages_.prefetch(first_of_pair(taken));
  for (const Side side : {kOut, kIn}) {
    const Port& port = ports_[side][taken[side]];
    if (stage == 0) prefetch_lists(port);
    if (stage == 3) port.waiting.prefetch(messages_[first_of_pair(taken)].place[side]);
  }
}

void Ports::prefetch_next(Side side, std::uint32_t port, int stage) const noexcept {
  const Port& own = ports_[side][port];
  if (stage == 0) return prefetch_lists(own);
  if (is_busy(side, port) || own.waiting.empty()) return;
  if (stage == 1) {
    own.waiting.prefetch_first();
    for (std::size_t word = 0; word < own.peers.size(); word += 8) simulation::prefetch(&own.peers[word]);
    return;
  }
  if (!is_busy(other(side), own.waiting.other_port(own.waiting.first()))) return;
  int left = kAskedFor;
  for_each_candidate(side, port, [&](std::uint32_t peer) {
    simulation::prefetch(&own.first_place[peer]);
    return --left > 0;
  });
}

// Calls visit(number of the peer) of each free port of which a message waits for this one, until it returns false.
template <typename Visit>
void Ports::for_each_candidate(Side side, std::uint32_t port, Visit visit) const {
  // Nearly all are busy: most words are 0, and what this port has in their place need not be loaded.
  const std::uint32_t circle = seats_[port].circle;
  const Bits &free = free_[other(side)][circle], &free_words = free_words_[other(side)][circle];
  const Bits& peers = ports_[side][port].peers;
  for (std::size_t i = 0; i < free_words.size(); ++i) {
    for (std::uint64_t words = free_words[i]; words != 0; words &= words - 1) {
      const std::size_t word = i * kBits + static_cast<std::size_t>(std::countr_zero(words));
      for (std::uint64_t both = free[word] & peers[word]; both != 0; both &= both - 1) {
        if (!visit(static_cast<std::uint32_t>(word * kBits) + static_cast<std::uint32_t>(std::countr_zero(both))))
          return;
      }
    }
  }
}

// The other port of the first message that waits for this one and can have both; kNowhere if there is none.
std::uint32_t Ports::find_next(Side side, std::uint32_t port) const {
  const Port& own = ports_[side][port];
  if (is_busy(side, port) || own.waiting.empty()) return kNowhere;
  std::uint32_t place = own.waiting.first();
  for (int left = kTried; left > 0; --left, place = own.waiting.next(place + 1)) {
    if (place == kNowhere) return kNowhere;
    const std::uint32_t peer = own.waiting.other_port(place);
    if (!is_busy(other(side), peer)) return peer;
  }
  std::uint32_t best = kNowhere, best_place = kNowhere;
  for_each_candidate(side, port, [&](std::uint32_t peer) {
    const std::uint32_t at = own.first_place[peer];
    if (at < best_place) {
      best_place = at;
      best = peer;
    }
    return true;
  });
  return best == kNowhere ? kNowhere : circles_[seats_[port].circle][best];
}

}  // namespace col::plan::simulation

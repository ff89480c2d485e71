#include "plan/simulation/ports.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace col::plan::simulation {
namespace {

// So many of the first in the list are tried one by one. Both ways find the same message.
constexpr int kTried = 4;

}  // namespace

void MessagePool::add_chunk() {
  void* const memory = std::aligned_alloc(kChunkBytes, kChunkBytes);
  if (memory == nullptr) throw std::bad_alloc();
  // Not the first: to clear a large page takes longer than a small simulation. Refused, it works as well.
  if (!chunks_.empty()) ::madvise(memory, kChunkBytes, MADV_HUGEPAGE);
  chunks_.emplace_back(static_cast<Message*>(memory));
}

Ports::Ports(const std::vector<std::uint32_t>& circles, MessagePool& messages)
    : messages_(messages), sizes_(1 + *std::max_element(circles.begin(), circles.end())) {
  for (const std::uint32_t circle : circles) seats_.push_back({.circle = circle, .index = sizes_[circle]++});
  for (const Side side : {kOut, kIn}) {
    ports_[side].resize(circles.size());
    busy_[side].resize(circles.size());
    for (const std::uint32_t size : sizes_) {
      free_[side].emplace_back((size + kBits - 1) / kBits);
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
  const Message& message = messages_[id];
  std::array<std::uint32_t, 2> place = {};
  for (const Side side : {kOut, kIn}) {
    const Side other = side == kOut ? kIn : kOut;
    Port& there = ports_[side][message.port[side]];
    const Seat peer = seats_[message.port[other]];
    place[side] = there.waiting.push({.other_port = message.port[other], .message = id});
    if (there.peers.empty()) {
      there.first_of_pair.resize(sizes_[peer.circle], kNowhere);
      there.last_of_pair.resize(sizes_[peer.circle], kNowhere);
      there.peers.resize(free_[other][peer.circle].size());
    }
    std::uint32_t& first = there.first_of_pair[peer.index];
    const std::uint32_t before = std::exchange(there.last_of_pair[peer.index], place[side]);
    if (first != kNowhere) {
      there.waiting[before].next_of_pair = place[side];
    } else {
      first = place[side];
      there.peers[peer.index / kBits] |= bit(peer.index);
    }
  }
  for (const Side side : {kOut, kIn})
    ports_[side][message.port[side]].waiting[place[side]].other_place = place[side == kOut ? kIn : kOut];
}

Ports::Taken Ports::take_next(Side side, std::uint32_t port) {
  const std::uint32_t place = find_next(side, port);
  if (place == kNowhere) return {};
  Port& own = ports_[side][port];
  const WaitingList::Entry entry = own.waiting[place];
  // The first of its pair: those behind it wait for the same two ports.
  const std::uint32_t next = entry.next_of_pair;
  const Taken taken{.message = entry.message,
                    .other = side == kOut ? kIn : kOut,
                    .port = port,
                    .other_port = entry.other_port,
                    .other_place = entry.other_place,
                    .next_place = next == kNowhere ? kNowhere : own.waiting[next].other_place};
  leave(own, place, entry.other_port, next);
  set_busy(side, port, true);
  set_busy(taken.other, taken.other_port, true);
  return taken;
}

void Ports::finish(const Taken& taken) {
  leave(ports_[taken.other][taken.other_port], taken.other_place, taken.port, taken.next_place);
}

// The place of the message; kNowhere if there is none.
std::uint32_t Ports::find_next(Side side, std::uint32_t port) const {
  const Side other = side == kOut ? kIn : kOut;
  const Port& own = ports_[side][port];
  if (is_busy(side, port) || own.waiting.empty()) return kNowhere;
  std::uint32_t place = own.waiting.first();
  for (int left = kTried; left > 0; --left, place = own.waiting.next(place + 1)) {
    if (place == kNowhere || !is_busy(other, own.waiting[place].other_port)) return place;
  }
  std::uint32_t best = kNowhere;
  // Nearly all are busy: most words are 0, and what this port has in their place need not be loaded.
  const std::uint32_t circle = seats_[port].circle;
  const Bits &free = free_[other][circle], &free_words = free_words_[other][circle];
  for (std::size_t i = 0; i < free_words.size(); ++i) {
    for (std::uint64_t words = free_words[i]; words != 0; words &= words - 1) {
      const std::size_t word = i * kBits + static_cast<std::size_t>(std::countr_zero(words));
      for (std::uint64_t both = free[word] & own.peers[word]; both != 0; both &= both - 1)
        best = std::min(best, own.first_of_pair[word * kBits + static_cast<std::size_t>(std::countr_zero(both))]);
    }
  }
  return best;
}

// The message at `place`, whose other port is `peer`, waits no longer.
void Ports::leave(Port& port, std::uint32_t place, std::uint32_t peer, std::uint32_t next_of_pair) {
  port.waiting.remove(place);
  const std::uint32_t index = seats_[peer].index;
  port.first_of_pair[index] = next_of_pair;
  if (next_of_pair == kNowhere) port.peers[index / kBits] &= ~bit(index);
}

}  // namespace col::plan::simulation

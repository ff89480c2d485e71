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
  for (const std::uint32_t circle : circles) {
    const std::uint32_t index = sizes_[circle]++;
    for (std::vector<Port>& side : ports_) side.push_back({.circle = circle, .index = index});
  }
  for (auto& side : busy_) side.resize(circles.size());
  for (const Side side : {kOut, kIn}) {
    for (const std::uint32_t size : sizes_) free_[side].emplace_back((size + kBits - 1) / kBits);
    for (const Port& port : ports_[side]) free_[side][port.circle][port.index / kBits] |= bit(port.index);
  }
}

void Ports::wait(std::uint32_t id) {
  Message& message = messages_[id];
  std::uint32_t before = kNoMessage;
  for (const Side side : {kOut, kIn}) {
    const Side other = side == kOut ? kIn : kOut;
    Port& there = port(side, message);
    message.place[side] = there.waiting.push({message.port[other], id});
    if (there.pairs.empty()) {
      there.pairs.resize(sizes_[there.circle]);
      there.peers.resize(free_[other][there.circle].size());
    }
    Pair& pair = this->pair(side, message);
    before = std::exchange(pair.last, id);
    if (before != kNoMessage) continue;
    pair.first = message.place[side];
    const std::uint32_t peer = port(other, message).index;
    there.peers[peer / kBits] |= bit(peer);
  }
  if (before != kNoMessage) messages_[before].next_of_pair = id;
}

std::uint32_t Ports::take_next(Side side, std::uint32_t port) {
  const std::uint32_t id = find_next(side, port);
  if (id != kNoMessage) {
    stop_waiting(id);
    take(id);
  }
  return id;
}

std::uint32_t Ports::find_next(Side side, std::uint32_t port) const {
  const Side other = side == kOut ? kIn : kOut;
  const Port& own = ports_[side][port];
  if (is_busy(side, port) || own.waiting.empty()) return kNoMessage;
  std::uint32_t place = own.waiting.first();
  for (int left = kTried; left > 0; --left, place = own.waiting.next(place + 1)) {
    if (place == kNowhere) return kNoMessage;
    if (!is_busy(other, own.waiting[place].other_port)) return own.waiting[place].message;
  }
  std::uint32_t best = kNowhere;
  const Bits& free = free_[other][own.circle];
  for (std::size_t word = 0; word < free.size(); ++word) {
    for (std::uint64_t both = free[word] & own.peers[word]; both != 0; both &= both - 1)
      best = std::min(best, own.pairs[word * kBits + static_cast<std::size_t>(std::countr_zero(both))].first);
  }
  return best == kNowhere ? kNoMessage : own.waiting[best].message;
}

void Ports::stop_waiting(std::uint32_t id) {
  Message& message = messages_[id];
  // The first of its pair: those behind it wait for the same two ports.
  const std::uint32_t next = std::exchange(message.next_of_pair, kNoMessage);
  for (const Side side : {kOut, kIn}) {
    Port& there = port(side, message);
    there.waiting.remove(message.place[side]);
    Pair& pair = this->pair(side, message);
    if (next != kNoMessage) {
      pair.first = messages_[next].place[side];
      continue;
    }
    pair = {};
    const std::uint32_t peer = port(side == kOut ? kIn : kOut, message).index;
    there.peers[peer / kBits] &= ~bit(peer);
  }
}

}  // namespace col::plan::simulation

// Messages, and the ports that they wait for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "plan/simulation/pair_table.hpp"
#include "plan/simulation/prefetch.hpp"
#include "plan/simulation/waiting_list.hpp"

namespace col::plan::simulation {

// A message has two ends, and so has everything about it: [kOut] is the sender's, [kIn] the receiver's.
enum Side : std::uint8_t { kOut = 0, kIn = 1 };

// 64 bytes: a line of the cache.
struct alignas(64) Message {
  std::array<int, 2> rank = {-1, -1};
  std::array<std::uint32_t, 2> slot = {};  // the number of the message in its rank's round
  std::array<std::uint32_t, 2> port = {};
  // While one end is missing: the next of the same two ends. While ports are missing: the next of the same two ports.
  std::uint32_t next_of_pair = kNoMessage;
  Side posted = kOut;      // while one end is missing: the end that is there
  std::uint8_t parts = 0;  // how many are still busy: its own time and the shared resources
  bool inter = false;      // between nodes
  std::size_t elements = 0, bytes = 0;
  // While ports are missing: its places in their lists, and, of the first of a pair of ports, the last of the pair.
  std::array<std::uint32_t, 2> place = {};
  std::uint32_t last_of_pair = kNoMessage;
};
static_assert(sizeof(Message) == 64);

// The existing messages. A place is used again after its message has arrived. Thousands of ranks have gigabytes of
// them, which are looked at in no order: in large pages, a look costs less.
class MessagePool {
 public:
  std::uint32_t make() {
    if (!free_.empty()) {
      const std::uint32_t id = free_.back();
      free_.pop_back();
      (*this)[id] = Message{};
      return id;
    }
    if (made_ % kChunk == 0) add_chunk();
    const std::uint32_t id = made_++;
    new (&(*this)[id]) Message{};
    return id;
  }
  void release(std::uint32_t id) { free_.push_back(id); }
  Message& operator[](std::uint32_t id) noexcept { return chunks_[id / kChunk].get()[id % kChunk]; }
  // It will be needed soon.
  void prefetch(std::uint32_t id) noexcept { simulation::prefetch(&(*this)[id]); }

 private:
  static constexpr std::size_t kChunkBytes = std::size_t{2} << 20;  // a large page
  static constexpr std::uint32_t kChunk = kChunkBytes / sizeof(Message);
  struct Free {
    void operator()(Message* chunk) const noexcept { std::free(chunk); }
  };

  void add_chunk();

  std::vector<std::unique_ptr<Message, Free>> chunks_;
  std::uint32_t made_ = 0;
  std::vector<std::uint32_t> free_;
};

// All ports, and the messages that wait for them: both ends are posted, but at least one port is busy.
//
// A port serves the first message that waits for it and whose other port is free. If many ports are free, this is one
// of the first few. If nearly all are busy, the search could be long. But then few peers are both free and have a
// message for this port: bits say which these are, and the first messages of these pairs are compared. Only ports of
// one circle ever meet, so bits stand for the peers of its own circle.
class Ports {
 public:
  // Port p is of the circle circles[p].
  Ports(const std::vector<std::uint32_t>& circles, MessagePool& messages);

  // Returns whether both ports were free; they then belong to the message. Requires: it does not wait.
  bool take(std::uint32_t id) {
    const Message& message = messages_[id];
    if (is_busy(kOut, message.port[kOut]) || is_busy(kIn, message.port[kIn])) return false;
    set_busy(message, true);
    return true;
  }
  void free(const Message& message) { set_busy(message, false); }

  void wait(std::uint32_t id);

  // The ports of a message that had to wait, and has both now. It is still in their lists.
  using Taken = std::array<std::uint32_t, 2>;
  // Takes those of the first message that waits for this port and can have both. All ports of a side may be asked
  // before finish() takes the first message out of the lists: a busy port is not asked again.
  std::optional<Taken> take_next(Side side, std::uint32_t port);
  // Returns the message.
  std::uint32_t finish(const Taken& taken);
  // They will be needed soon: ask the memory for what the next stage looks at. The last is take_next(), or finish().
  void prefetch_next(Side side, std::uint32_t port, int stage) const noexcept;
  void prefetch_finish(const Taken& taken, int stage) noexcept;

 private:
  static constexpr std::uint32_t kNowhere = WaitingList::kNowhere;
  using Bits = std::vector<std::uint64_t>;
  static constexpr std::uint32_t kBits = 64;

  struct Seat {
    std::uint32_t circle = 0, index = 0;  // its number in the circle
  };
  struct Port {
    WaitingList waiting = {};
    // By the peer's number in the circle; empty until a message waits.
    Bits peers = {};  // those of which a message waits
    // For each of these: the first message that waits for both ports, and its place here. A search looks at many
    // places.
    std::vector<std::uint32_t> first_of_pair = {}, first_place = {};
  };

  static void prefetch_lists(const Port& port) noexcept {  // which are in two lines
    simulation::prefetch(&port.waiting);
    simulation::prefetch(&port.first_of_pair);
  }
  bool is_busy(Side side, std::uint32_t port) const noexcept { return busy_[side][port] != 0; }
  void set_busy(Side side, std::uint32_t port, bool busy) {
    const Seat seat = seats_[port];
    busy_[side][port] = busy ? 1 : 0;
    const std::uint32_t word = seat.index / kBits;
    std::uint64_t& bits = free_[side][seat.circle][word];
    bits ^= bit(seat.index);
    std::uint64_t& words = free_words_[side][seat.circle][word / kBits];
    words = bits != 0 ? words | bit(word) : words & ~bit(word);
  }
  void set_busy(const Message& message, bool busy) {
    for (const Side side : {kOut, kIn}) set_busy(side, message.port[side], busy);
  }
  std::uint32_t first_of_pair(const Taken& taken) const noexcept {
    return ports_[kOut][taken[kOut]].first_of_pair[seats_[taken[kIn]].index];
  }
  static Side other(Side side) noexcept { return side == kOut ? kIn : kOut; }
  static std::uint64_t bit(std::uint32_t index) noexcept { return std::uint64_t{1} << index % kBits; }
  std::uint32_t find_next(Side side, std::uint32_t port) const;
  template <typename Visit>
  void for_each_candidate(Side side, std::uint32_t port, Visit visit) const;

  MessagePool& messages_;
  std::vector<Seat> seats_;  // by port
  std::array<std::vector<Port>, 2> ports_;
  std::array<std::vector<std::uint8_t>, 2> busy_;    // by port; a bool each, but in little memory
  std::vector<std::vector<std::uint32_t>> circles_;  // the ports of each
  std::array<std::vector<Bits>, 2> free_;            // ports that are not busy, by circle
  std::array<std::vector<Bits>, 2> free_words_;      // the words of these that are not 0
};

}  // namespace col::plan::simulation

// The two ends of a ring: a stream of frames from one rank to another. Each end is used by one thread.
//
// A frame is a header and its payload, padded to whole headers, so that a header never wraps around the end. The first
// word of a header says that its frame is there: it is stored last, so that a small message comes in one cache line
// with its flag. The word after the last frame is zero.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backend/shm/segment/layout.hpp"
#include "core/kernels/fold.hpp"
#include "core/kernels/store_choice.hpp"
#include "core/kernels/to_others.hpp"

namespace col::shm_backend {

enum class FrameKind : std::uint32_t {
  none = 0,
  eager,    // a whole message: slot, bytes
  request,  // a message that is too large to be eager: slot, bytes, id of the send
  clear,    // the answer when a receive exists: id of the send, in `slot` the id of the receive
  taken,    // the other answer: it has been read where it is; id of the send
  data,     // a part of such a message: id of the receive
};

struct FrameHeader {
  FrameKind kind = FrameKind::none;  // with payload_bytes: the word that is stored last
  std::uint32_t payload_bytes = 0;
  std::uint64_t slot = 0;
  std::uint64_t bytes = 0;
  std::uint64_t id = 0;
};
static_assert(sizeof(FrameHeader) == 32);

constexpr std::size_t frame_bytes(std::size_t payload_bytes) noexcept {
  return sizeof(FrameHeader) + (payload_bytes + sizeof(FrameHeader) - 1) / sizeof(FrameHeader) * sizeof(FrameHeader);
}

// How the ends touch what they share. A test has another one, which sees all that they do
// (tests/unit/shm/ring_order_test.cpp).
class RingMemory {
 public:
  void write(std::byte* to, const void* from, std::size_t bytes) noexcept {
    const auto copy = [&](core::StoreChoice::Way way) {
      core::copy_to_others(to, static_cast<const std::byte*>(from), bytes, core::StoreChoice::stores_of(way));
      return bytes;
    };
    if (bytes < core::kLeastWhole)
      std::memcpy(to, from, bytes);
    else if (!tries_ || bytes < kLeastChosen)
      copy(core::StoreChoice::Way::again);
    else
      choice_.run({}, bytes, copy);
  }
  static void read(void* to, const std::byte* from, std::size_t bytes, core::Stores stores) noexcept {
    if (stores == core::Stores::cached)
      std::memcpy(to, from, bytes);
    else
      core::copy(static_cast<std::byte*>(to), from, bytes, stores);
  }
  void try_nothing() noexcept { tries_ = false; }
  // relaxed: it is seen with the first word of the frame before it.
  static void clear(std::byte* word) noexcept { atomic(word).store(0, std::memory_order_relaxed); }
  // release, pairs with is_there(): a consumer that sees the word also sees the frame. Not seq_cst, though the
  // consumer's doorbell is read next: a sleeper looks again after a nap (doorbell.hpp).
  static void show(std::byte* word, std::uint64_t value) noexcept {
    atomic(word).store(value, std::memory_order_release);
  }
  // acquire pairs with show(). seq_cst, as it is the last look of a rank that goes to sleep (doorbell.hpp).
  static bool is_there(std::byte* word) noexcept { return atomic(word).load(std::memory_order_seq_cst) != 0; }
  // release, pairs with head(): the consumer's reads come before the producer's next writes.
  static void give_back(RingIndices& indices, std::uint64_t head) noexcept {
    indices.head.store(head, std::memory_order_release);
  }
  // Pairs with give_back(): bytes before it have been read and may be overwritten. seq_cst, because it is the last look
  // of a rank that goes to sleep (doorbell.hpp).
  static std::uint64_t head(const RingIndices& indices) noexcept {
    return indices.head.load(std::memory_order_seq_cst);
  }

 private:
  // What is written past the caches is late by a way to memory.
  static constexpr std::size_t kLeastChosen = 16384;

  static std::atomic_ref<std::uint64_t> atomic(std::byte* word) noexcept {
    return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(word));
  }

  core::StoreChoice choice_;
  bool tries_ = true;
};

template <class Memory>
class ProducerOver {
 public:
  ProducerOver() = default;
  ProducerOver(RingIndices& indices, std::byte* ring, std::size_t ring_bytes) noexcept
      : indices_(&indices), ring_(ring), ring_bytes_(ring_bytes) {}

  // Payloads are always written in the usual way from now on.
  void try_nothing() noexcept { memory_.try_nothing(); }

  bool fits(std::size_t payload_bytes) noexcept {
    const std::size_t needed = frame_bytes(payload_bytes) + sizeof(FrameHeader);  // and the word after it
    if (ring_bytes_ - (tail_ - head_) >= needed) return true;
    head_ = Memory::head(*indices_);
    return ring_bytes_ - (tail_ - head_) >= needed;
  }

  // How far into the ring put() would write for a frame of that payload, with the word after it.
  std::size_t end_of(std::size_t payload_bytes) const noexcept {
    return std::min(ring_bytes_, (tail_ & (ring_bytes_ - 1)) + frame_bytes(payload_bytes) + sizeof(std::uint64_t));
  }
  // The consumer sees the frame from now on. Requires: fits(header.payload_bytes).
  void put(const FrameHeader& header, const void* payload) noexcept {
    const std::size_t offset = tail_ & (ring_bytes_ - 1);
    memory_.write(ring_ + offset + sizeof(std::uint64_t),
                  reinterpret_cast<const std::byte*>(&header) + sizeof(std::uint64_t),
                  sizeof header - sizeof(std::uint64_t));
    if (payload != nullptr && header.payload_bytes > 0) write(offset + sizeof header, payload, header.payload_bytes);
    tail_ += frame_bytes(header.payload_bytes);
    if (tail_ != cleared_) clear(tail_);
    std::uint64_t word = 0;
    std::memcpy(&word, &header, sizeof word);
    Memory::show(ring_ + offset, word);
  }

  // The same for the frame after the next, if that is a small one: off the way of a message. `claimed`: this rank may
  // write so far into the ring.
  void clear_ahead(std::size_t claimed) noexcept {
    const std::uint64_t ahead = tail_ + frame_bytes(sizeof(std::uint64_t));
    const bool has_room = ring_bytes_ - (ahead - head_) >= sizeof(FrameHeader) && ahead - head_ < ring_bytes_;
    if (!has_room || (ahead & (ring_bytes_ - 1)) + sizeof(std::uint64_t) > claimed) return;
    clear(ahead);
    cleared_ = ahead;
  }

 protected:  // a test plants bugs
  void clear(std::uint64_t place) noexcept { Memory::clear(ring_ + (place & (ring_bytes_ - 1))); }
  void write(std::size_t offset, const void* from, std::size_t bytes) noexcept {
    offset &= ring_bytes_ - 1;
    const std::size_t first = std::min(bytes, ring_bytes_ - offset);
    memory_.write(ring_ + offset, from, first);
    if (first < bytes) memory_.write(ring_, static_cast<const std::byte*>(from) + first, bytes - first);
  }

  [[no_unique_address]] Memory memory_;
  RingIndices* indices_ = nullptr;
  std::byte* ring_ = nullptr;
  std::size_t ring_bytes_ = 0;  // a power of two
  std::uint64_t tail_ = 0;
  std::uint64_t head_ = 0;     // as last seen
  std::uint64_t cleared_ = 0;  // if it is ahead of the tail: the word there is zero
};

template <class Memory>
class ConsumerOver {
 public:
  ConsumerOver() = default;
  ConsumerOver(RingIndices& indices, std::byte* ring, std::size_t ring_bytes) noexcept
      : indices_(&indices), ring_(ring), ring_bytes_(ring_bytes) {}

  // Whether a frame is there.
  bool is_there() const noexcept { return Memory::is_there(ring_ + (head_ & (ring_bytes_ - 1))); }

  // Requires: is_there().
  FrameHeader front() const noexcept {
    FrameHeader header;
    Memory::read(&header, ring_ + (head_ & (ring_bytes_ - 1)), sizeof header, core::Stores::cached);
    return header;
  }
  // The payload of the front frame, past the caches if `stores` says so.
  void read(void* to, std::size_t bytes, core::Stores stores = core::Stores::cached) const noexcept {
    if (bytes == 0) return;
    const std::size_t offset = (head_ + sizeof(FrameHeader)) & (ring_bytes_ - 1);
    const std::size_t first = std::min(bytes, ring_bytes_ - offset);
    Memory::read(to, ring_ + offset, first, stores);
    if (first < bytes) Memory::read(static_cast<std::byte*>(to) + first, ring_, bytes - first, stores);
  }
  void pop(const FrameHeader& header) noexcept { head_ += frame_bytes(header.payload_bytes); }

  // How much was popped since the last release().
  std::uint64_t unreleased() const noexcept { return head_ - released_; }
  // Gives the room of popped frames back to the producer.
  void release() noexcept {
    released_ = head_;
    Memory::give_back(*indices_, head_);
  }

 protected:
  RingIndices* indices_ = nullptr;
  std::byte* ring_ = nullptr;
  std::size_t ring_bytes_ = 0;
  std::uint64_t head_ = 0;
  std::uint64_t released_ = 0;
};

using Producer = ProducerOver<RingMemory>;
using Consumer = ConsumerOver<RingMemory>;

}  // namespace col::shm_backend

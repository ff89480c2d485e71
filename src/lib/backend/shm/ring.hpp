// The two ends of a ring: a stream of frames from one rank to another. Each end is used by one thread.
//
// A frame is a header and its payload, padded to whole headers, so that a header never wraps around the end.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backend/shm/segment/layout.hpp"

namespace col::shm_backend {

enum class FrameKind : std::uint32_t {
  none = 0,
  eager,    // a whole message: slot, bytes
  request,  // a message that is too large to be eager: slot, bytes, id of the send
  clear,    // the answer when a receive exists: id of the send, in `slot` the id of the receive
  data,     // a part of such a message: id of the receive
};

struct FrameHeader {
  FrameKind kind = FrameKind::none;
  std::uint32_t payload_bytes = 0;
  std::uint64_t slot = 0;
  std::uint64_t bytes = 0;
  std::uint64_t id = 0;
};
static_assert(sizeof(FrameHeader) == 32);

constexpr std::size_t frame_bytes(std::size_t payload_bytes) noexcept {
  return sizeof(FrameHeader) + (payload_bytes + sizeof(FrameHeader) - 1) / sizeof(FrameHeader) * sizeof(FrameHeader);
}

class Producer {
 public:
  Producer() = default;
  Producer(RingIndices& indices, std::byte* ring, std::size_t ring_bytes) noexcept
      : indices_(&indices), ring_(ring), ring_bytes_(ring_bytes) {}

  bool fits(std::size_t payload_bytes) noexcept {
    const std::size_t needed = frame_bytes(payload_bytes);
    if (ring_bytes_ - (tail_ - head_) >= needed) return true;
    // Pairs with Consumer::release(): bytes before `head` have been read and may be overwritten. seq_cst, because it is
    // the last look of a rank that goes to sleep (doorbell.hpp).
    head_ = indices_->head.load(std::memory_order_seq_cst);
    return ring_bytes_ - (tail_ - head_) >= needed;
  }

  // The consumer sees the frame from now on. Requires: fits(header.payload_bytes).
  void put(const FrameHeader& header, const void* payload) noexcept {
    const std::size_t offset = tail_ & (ring_bytes_ - 1);
    std::memcpy(ring_ + offset, &header, sizeof header);
    if (payload != nullptr && header.payload_bytes > 0) write(offset + sizeof header, payload, header.payload_bytes);
    tail_ += frame_bytes(header.payload_bytes);
    // Pairs with Consumer::available(): a consumer that sees the new tail also sees the frame. seq_cst, because the
    // consumer's doorbell is read next (doorbell.hpp).
    indices_->tail.store(tail_, std::memory_order_seq_cst);
  }

 private:
  void write(std::size_t offset, const void* from, std::size_t bytes) noexcept {
    offset &= ring_bytes_ - 1;
    const std::size_t first = std::min(bytes, ring_bytes_ - offset);
    std::memcpy(ring_ + offset, from, first);
    if (first < bytes) std::memcpy(ring_, static_cast<const std::byte*>(from) + first, bytes - first);
  }

  RingIndices* indices_ = nullptr;
  std::byte* ring_ = nullptr;
  std::size_t ring_bytes_ = 0;  // a power of two
  std::uint64_t tail_ = 0;
  std::uint64_t head_ = 0;  // as last seen
};

class Consumer {
 public:
  Consumer() = default;
  Consumer(RingIndices& indices, const std::byte* ring, std::size_t ring_bytes) noexcept
      : indices_(&indices), ring_(ring), ring_bytes_(ring_bytes) {}

  // The number of bytes of complete frames that are there.
  std::uint64_t available() const noexcept {
    // Pairs with Producer::put(). seq_cst, as it is the last look of a rank that goes to sleep (doorbell.hpp).
    return indices_->tail.load(std::memory_order_seq_cst) - head_;
  }

  // Requires: available() > 0.
  FrameHeader front() const noexcept {
    FrameHeader header;
    std::memcpy(&header, ring_ + (head_ & (ring_bytes_ - 1)), sizeof header);
    return header;
  }
  // The payload of the front frame.
  void read(void* to, std::size_t bytes) const noexcept {
    if (bytes == 0) return;
    const std::size_t offset = (head_ + sizeof(FrameHeader)) & (ring_bytes_ - 1);
    const std::size_t first = std::min(bytes, ring_bytes_ - offset);
    std::memcpy(to, ring_ + offset, first);
    if (first < bytes) std::memcpy(static_cast<std::byte*>(to) + first, ring_, bytes - first);
  }
  void pop(const FrameHeader& header) noexcept { head_ += frame_bytes(header.payload_bytes); }

  // How much was popped since the last release().
  std::uint64_t unreleased() const noexcept { return head_ - released_; }
  // Gives the room of popped frames back to the producer.
  void release() noexcept {
    released_ = head_;
    // Pairs with Producer::fits(): our reads come before its next writes. seq_cst, because the producer's doorbell is
    // read next (doorbell.hpp).
    indices_->head.store(head_, std::memory_order_seq_cst);
  }

 private:
  RingIndices* indices_ = nullptr;
  const std::byte* ring_ = nullptr;
  std::size_t ring_bytes_ = 0;
  std::uint64_t head_ = 0;
  std::uint64_t released_ = 0;
};

}  // namespace col::shm_backend

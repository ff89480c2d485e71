#include "support/fake_gpu/nccl/exchange.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>

#include "support/fake_gpu/common.hpp"

namespace fake_nccl {
namespace {

// Copies between the ring, from `position` on, and `bytes`; `to_ring` gives the direction.
void copy_ring(Channel& channel, uint64_t position, char* bytes, size_t count, bool to_ring) {
  while (count > 0) {
    const size_t offset = position % kChannelBytes;
    const size_t part = std::min(count, kChannelBytes - offset);
    if (to_ring) {
      std::memcpy(channel.ring + offset, bytes, part);
    } else {
      std::memcpy(bytes, channel.ring + offset, part);
    }
    position += part;
    bytes += part;
    count -= part;
  }
}

// One side of one transfer. step() does what can be done now and tells whether that was anything.
class Side {
 public:
  Side(Channel& channel, const Transfer& transfer, uint64_t number, bool sends)
      : channel_(channel), transfer_(transfer), number_(number), sends_(sends) {}

  bool done() const { return agreed_ && moved_ == bytes_; }

  bool step() {
    bool progressed = false;
    if (!agreed_) progressed = sends_ ? offer() : accept();
    if (agreed_) progressed |= sends_ ? push() : pull();
    return progressed;
  }

 private:
  bool offer() {
    if (!posted_) {
      // The sender of the last transfer was this rank too, and has seen it accepted.
      channel_.head = transfer_.head;
      channel_.posted.store(number_, std::memory_order_release);
      posted_ = true;
      return true;
    }
    agreed_ = channel_.accepted.load(std::memory_order_acquire) >= number_;
    return agreed_;
  }

  bool accept() {
    if (channel_.posted.load(std::memory_order_acquire) < number_) return false;
    if (!channel_.head.matches(transfer_.head)) return false;
    if (channel_.head.symmetry != transfer_.head.symmetry)
      fake_gpu::die("ranks pass buffers at different places of symmetric windows: what NCCL then does is undefined");
    bytes_ = channel_.head.bytes;
    channel_.accepted.store(number_, std::memory_order_release);
    agreed_ = true;
    return true;
  }

  bool push() {
    const uint64_t produced = channel_.produced.load(std::memory_order_relaxed);
    const uint64_t room = kChannelBytes - (produced - channel_.consumed.load(std::memory_order_acquire));
    const uint64_t count = std::min<uint64_t>(room, bytes_ - moved_);
    copy_ring(channel_, produced, transfer_.bytes + moved_, count, true);
    channel_.produced.store(produced + count, std::memory_order_release);
    moved_ += count;
    return count > 0;
  }

  bool pull() {
    const uint64_t consumed = channel_.consumed.load(std::memory_order_relaxed);
    const uint64_t there = channel_.produced.load(std::memory_order_acquire) - consumed;
    const uint64_t count = std::min<uint64_t>(there, bytes_ - moved_);
    const uint64_t wanted = std::min(count, std::max(transfer_.head.bytes, moved_) - moved_);
    if (wanted > 0) copy_ring(channel_, consumed, transfer_.bytes + moved_, wanted, false);
    channel_.consumed.store(consumed + count, std::memory_order_release);
    moved_ += count;
    return count > 0;
  }

  Channel& channel_;
  Transfer transfer_;
  uint64_t number_;
  bool sends_;
  bool posted_ = false;
  bool agreed_ = false;
  uint64_t bytes_ = transfer_.head.bytes;  // that move: as the sender has it
  uint64_t moved_ = 0;
};

// The transfers of each channel, of which only the first may move.
using Queues = std::map<const Channel*, std::deque<Side>>;

bool step_all(Queues& queues) {
  bool progressed = false;
  for (auto& [channel, queue] : queues) {
    while (!queue.empty()) {
      progressed |= queue.front().step();
      if (!queue.front().done()) break;
      queue.pop_front();
    }
  }
  std::erase_if(queues, [](const auto& entry) { return entry.second.empty(); });
  return progressed;
}

}  // namespace

bool exchange(const Segment& segment, int rank, TransferCounts& counts, Exchange transfers, const char* what,
              const std::function<bool()>& stop) {
  Queues sends, receives;
  bool with_lost = false;
  auto lost = [&](int peer) { return (segment.head().lost.load() >> peer & 1) != 0; };
  for (const Transfer& transfer : transfers.sends) {
    Channel& channel = segment.channel(rank, transfer.peer);
    sends[&channel].emplace_back(channel, transfer, ++counts.sent[transfer.peer], true);
    with_lost |= lost(transfer.peer);
  }
  for (const Transfer& transfer : transfers.receives) {
    Channel& channel = segment.channel(transfer.peer, rank);
    receives[&channel].emplace_back(channel, transfer, ++counts.received[transfer.peer], false);
    with_lost |= lost(transfer.peer);
  }
  return segment.wait(
      std::string(what) + " of rank " + std::to_string(rank),
      [&] {
        if (with_lost) return false;
        bool progressed = false;
        // Both directions until neither moves: a transfer to oneself needs them in turn.
        while (static_cast<int>(step_all(sends)) + static_cast<int>(step_all(receives)) > 0) progressed = true;
        if (progressed) segment.announce();
        return sends.empty() && receives.empty();
      },
      stop);
}

}  // namespace fake_nccl

// The file that the ranks of one communicator share, be they threads or processes.
//
// It lies in $TMPDIR under a name made of the communicator's identity, from the first rank's arrival to the last one's;
// after that only the mappings are left. A file of zeros is a segment in which nothing has happened.
//
//   head | seat of each rank | channel from each rank to each rank
//
// Every change is followed by announce(), which wakes all who sleep in wait_for_change().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace fake_nccl {

constexpr int kMostRanks = 64;
constexpr size_t kChannelBytes = 1 << 16;

struct SegmentHead {
  std::atomic<uint32_t> changes;  // the word ranks sleep on
  std::atomic<uint32_t> size;     // as the first rank has it
  std::atomic<uint32_t> arrived;
  std::atomic<uint64_t> lost;  // a bit per rank
};

struct Seat {
  std::atomic<uint32_t> taken;
  std::atomic<uint32_t> finalized;
  std::atomic<uint32_t> windows;       // that it has begun to register
  std::atomic<uint64_t> wanted_peers;  // to which it has begun to connect
  int32_t process;
  int32_t device;  // as the machine counts them
  int32_t color;
  int32_t key;
};

// A transfer in words; the fingerprints of both sides must agree before a byte moves.
struct TransferHead {
  uint64_t fingerprint;
  uint64_t bytes;
  uint64_t symmetry = 0;  // where the buffers are in symmetric windows; 0: not both are in one

  bool matches(const TransferHead& other) const { return fingerprint == other.fingerprint; }
};

// The k-th transfer from one rank to another: the sender writes the head and posts k; the receiver accepts k if its own
// head matches, and otherwise never does; then the sender's bytes go round the ring. A receiver that wants less drops
// the rest, and one that wants more is left with what it had.
struct Channel {
  std::atomic<uint64_t> posted;
  std::atomic<uint64_t> accepted;
  std::atomic<uint64_t> produced;  // bytes since the beginning
  std::atomic<uint64_t> consumed;
  TransferHead head;
  char ring[kChannelBytes];
};

class Segment {
 public:
  // Opens or creates the file.
  Segment(const std::string& identity, int size);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  SegmentHead& head() const { return *static_cast<SegmentHead*>(memory_); }
  Seat& seat(int rank) const;
  Channel& channel(int from, int to) const;
  int size() const { return size_; }

  // Removes the name; who has not arrived will never meet the others.
  void unlink();
  void announce() const;
  // Sleeps until a change after `seen` (an earlier changes()), or for a moment.
  void wait_for_change(uint32_t seen) const;
  uint32_t changes() const { return head().changes.load(std::memory_order_acquire); }
  // Waits for the condition; false when `stop` says so first. Ends the process when it takes too long.
  bool wait(const std::string& what, const std::function<bool()>& condition, const std::function<bool()>& stop) const;

 private:
  std::string path_;
  int size_;
  size_t bytes_;
  void* memory_ = nullptr;
};

}  // namespace fake_nccl

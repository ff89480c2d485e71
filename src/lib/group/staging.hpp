// Buffers that are in another kind of memory than a channel moves: copies of them that it can work on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <col/backend.hpp>

namespace col::group {

// Memory for the copies, kept for the next call: page-locked memory takes longer to get than to fill. None goes back
// before the pool's end: that waits for all that the device does, which may wait for peers that wait for this rank.
// Thread safe: what a Work holds may come back from any thread.
class StagingPool {
 public:
  struct Block {
    Device::Type type = Device::Type::cpu;  // page-locked, or of the device
    int device = 0;
    std::size_t bytes = 0;
    std::shared_ptr<void> memory = {};  // shared with nobody: what DeviceMemory gives
  };

  // Throws resource, and what gpus() throws.
  Block take(Device::Type type, int device, std::size_t bytes);
  void give_back(Block block);

 private:
  std::mutex mutex_;  // guards what follows
  std::vector<Block> free_;
};

// The copies of one call. In order: replace() for each buffer, fetch(), the call itself on what replace() gave,
// give_back(); copied() in between until all has been. Dropped before it has come to that, the memory must stay as it
// is; so it does, for as long as the pool.
class Staging {
 public:
  // Of a long copy: long enough that starting it costs little, short enough that the first part in and the last one
  // out, which nothing hides, are little of the whole.
  static constexpr std::size_t kPartBytes = std::size_t{4} << 20;

  // Whether a channel for memory of `wanted` needs a copy of the buffer. What runs on a GPU wants elements where their
  // type belongs; what runs on the host takes them anywhere.
  static bool is_needed(ConstTensorView view, Device wanted) {
    if (view.empty()) return false;
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(view.data) % size_of(view.dtype) == 0;
    return view.device.type != wanted.type || (wanted.type != Device::Type::cpu && !is_aligned);
  }

  explicit Staging(StagingPool& pool) : pool_(pool) {}  // which must outlive it
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // What the call works on instead, in memory of `wanted`: the buffer itself where that serves. `is_read`,
  // `is_written`: by the call. Throws invalid_argument when the memory is not where its view says, resource, and what
  // gpus() throws.
  TensorView replace(TensorView view, Device wanted, bool is_read, bool is_written);
  bool empty() const noexcept { return copies_.empty(); }
  bool is_captured(Stream stream) const;
  // Starts to copy what is read, or back what has been written: in `stream` as DeviceMemory::copy() says. In parts, of
  // which those that have been copied can be used.
  void fetch(Stream stream);
  void give_back(Stream stream);
  // How many bytes of what replace() gave as `data` have been fetched, from the first one. Throws io.
  std::size_t fetched(const void* data);
  // Starts to copy back what has been written of it so far.
  void give_back(const void* data, std::size_t written, Stream stream);
  // Whether all copies have ended. Throws io.
  bool copied();

 private:
  struct Part {
    std::unique_ptr<DeviceCopy> copy;
    std::size_t end;  // in bytes from the buffer's begin
  };
  struct Copy {
    TensorView original;
    StagingPool::Block block;
    Device place;    // of the block
    int device = 0;  // that copies between the two
    bool is_read = false, is_written = false;
    std::vector<Part> fetching = {};  // in order
    std::size_t parts_fetched = 0;
    std::size_t given_back = 0;  // bytes whose copy has begun
  };

  static TensorView view_of(const Copy& copy);
  Copy& copy_at(const void* data);
  static std::size_t fetched(Copy& copy);
  void give_back(Copy& copy, std::size_t written, Stream stream);

  StagingPool& pool_;
  std::vector<Copy> copies_;
  std::vector<std::unique_ptr<DeviceCopy>> returning_;
};

}  // namespace col::group

// The memory of this host's GPUs, and copies of buffers that are in another kind of memory than a channel moves. The
// channel works on the copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include <col/device.hpp>

namespace col::group {

// The memory of the GPUs. Loads the libraries for it. Throws unavailable and says why if there are no GPUs.
DeviceMemory& gpus();

// The name of the backend that moves the memory of GPUs; empty if there is none.
std::string_view gpu_backend_name();

// The GPU that this thread has made current, as with cudaSetDevice(). Nothing, and nothing is loaded, if it has none,
// or the program has not started the CUDA driver itself. Else it loads what gpus() loads.
std::optional<int> current_gpu() noexcept;
// That one; without one, those that any thread of the process has started. None, and nothing is loaded, if the program
// has not started the driver itself. Else it loads what gpus() loads.
std::vector<int> gpus_in_use() noexcept;

// Memory for the copies. It is kept for the next call, because allocating page-locked memory takes longer than filling
// it. Nothing is freed before the end of the pool: freeing waits for all work of the device, which may wait for peers
// that wait for this rank. Thread safe: the memory of a Work may come back from any thread.
class StagingPool {
 public:
  struct Block {
    Device::Type type = Device::Type::cpu;  // page-locked host memory, or memory of the device
    int device = 0;
    std::size_t bytes = 0;
    std::shared_ptr<void> memory = {};  // not shared with others: what DeviceMemory returns
  };

  // Throws resource, and what gpus() throws.
  Block take(Device::Type type, int device, std::size_t bytes);
  void give_back(Block block);

 private:
  std::mutex mutex_;  // guards the members below
  std::vector<Block> free_;
};

// The copies of one call. The order is: replace() for each buffer, fetch(), the call itself on what replace() returned,
// give_back(). Between these steps, call copied() until it returns true. If it is destroyed before the end, the memory
// must stay as it is; it does, as long as the pool lives.
class Staging {
 public:
  // The size of a part of a long copy. It is long enough that starting it costs little. It is short enough that the
  // first part in and the last part out, which nothing hides, are a small share of the whole.
  static constexpr std::size_t kPartBytes = std::size_t{4} << 20;

  // Whether a channel for memory of `wanted` needs a copy of the buffer. Work on a GPU needs elements at aligned
  // addresses; work on the host takes them at any address.
  static bool is_needed(ConstTensorView view, Device wanted) {
    if (view.empty()) return false;
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(view.data) % size_of(view.dtype) == 0;
    return view.device.type != wanted.type || (wanted.type != Device::Type::cpu && !is_aligned);
  }

  explicit Staging(StagingPool& pool) : pool_(pool) {}  // the pool must outlive it
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // What the call works on instead of the buffer, in memory of `wanted`; the buffer itself if that works. `is_read`,
  // `is_written`: by the call. Throws invalid_argument if the memory is not where its view says, resource, and what
  // gpus() throws.
  TensorView replace(TensorView view, Device wanted, bool is_read, bool is_written);
  bool empty() const noexcept { return copies_.empty(); }
  // True if copies cannot be given to the stream, because it is being captured, or, of the default stream, one that is
  // ordered with it.
  bool is_captured(Stream stream) const;
  // True if what the call writes cannot be copied back to the end for that reason.
  bool awaits_capture(Stream stream) const;
  // Starts to copy what the call reads, in `stream` as DeviceMemory::copy() says. It copies in parts; parts that have
  // been copied can be used.
  void fetch(Stream stream);
  // Starts to copy back what the call has written; if the stream is being captured, once that has ended.
  void give_back(Stream stream);
  // How many bytes of the copy `data` (from replace()) have been fetched, from the first one. Throws io.
  std::size_t fetched(const void* data);
  // Starts to copy back what has been written of it so far. Not if the stream is being captured.
  void give_back(const void* data, std::size_t written, Stream stream);
  // Whether all copies have ended. Throws io.
  bool copied();

 private:
  struct Part {
    std::unique_ptr<DeviceCopy> copy;
    std::size_t end;  // in bytes from the begin of the buffer
  };
  struct Copy {
    TensorView original;
    StagingPool::Block block;
    Device place;    // the place of the block
    int device = 0;  // the device that copies between the two
    bool is_read = false, is_written = false;
    std::vector<Part> fetching = {};  // in order
    std::size_t parts_fetched = 0;
    std::size_t given_back = 0;  // bytes whose copy has begun
  };

  static TensorView view_of(const Copy& copy);
  Copy& copy_at(const void* data);
  static std::size_t fetched(Copy& copy);
  void give_back(Copy& copy, std::size_t written, Stream stream);
  bool give_back_owed();

  StagingPool& pool_;
  std::vector<Copy> copies_;
  std::vector<std::unique_ptr<DeviceCopy>> returning_;
  std::optional<Stream> owed_;  // that of the copies back which have not begun
};

}  // namespace col::group

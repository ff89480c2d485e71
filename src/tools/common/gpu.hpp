// GPU memory, for tools that fill buffers there and check what they hold afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <col/device.hpp>
#include <col/group.hpp>

namespace col::tools {

// The GPUs of this host. Loads the libraries for them. Throws col::Error, unavailable, which says why there are none.
DeviceMemory& gpus();
// Why there are no GPUs, or why NCCL cannot be used; empty if they can be used. A child process finds out, because the
// caller must stay with one thread and without CUDA; programs that start ranks need that. Both block for a minute at
// most.
std::string why_no_gpus();
std::string why_no_nccl();

// The name of the backend for GPUs, whether it can be used here or not; empty if this build has none.
std::string device_backend();
// Whether the channels of this backend move the memory of GPUs. False for a name that no backend has.
bool moves_device_memory(std::string_view backend);

// The GPU that a rank works with. The ranks of a host use its GPUs in turn, and share them if there are more ranks.
int gpu_of(const ContextSpec& rank);
// Makes that GPU current in this thread until the pointer is gone. The pointer must be released in this thread.
std::shared_ptr<void> use_gpu(const ContextSpec& rank);

// Whether a text about GPUs is about stand-ins. Results of stand-ins say nothing about GPUs, so everything that is
// shown of them must say so.
inline bool is_fake_gpu(std::string_view text) {
  return text.find("fake") != std::string_view::npos;
}

// Identifies a GPU.
struct GpuFacts {
  std::string name;  // "NVIDIA H200"; the stand-ins of the tests say "fake GPU 0"
  std::string bus;   // "0000:1b:00.0"
  std::string text() const { return name + " " + bus; }
  bool is_fake() const { return is_fake_gpu(name); }
};
GpuFacts facts_of_gpu(int device);
// "NCCL 2.28.9 (/usr/lib/libnccl.so.2)". Throws col::Error, unavailable.
std::string facts_of_nccl();

// Which ranks have which GPU, in words: "ranks 0, 2: NVIDIA H200 0000:1b:00.0; rank 1: NVIDIA H200 0000:2b:00.0".
struct RankOnGpu {
  std::string host;  // separates hosts; it is not shown
  std::string gpu;
};
std::string gpus_by_rank(std::span<const RankOnGpu> ranks);

// The GPU that is current in this thread. Throws col::Error, unavailable, if none is.
int current_gpu();

// Waits until the timer's stream has reached the stop, for a minute at most. Throws col::Error: io, timeout.
double seconds_of(DeviceTimer& timer);

// Copy between the host and the memory of a GPU, and block until the copy has ended, for a minute at most. Throw
// col::Error: io, timeout.
void copy_to_gpu(void* to, std::span<const std::byte> from, int device);
void copy_from_gpu(std::span<std::byte> to, const void* from, int device);

// How two buffers of a GPU differ, found by the GPU: `count` elements of 1, 2, 4 or 8 bytes, bit by bit. Nothing if
// col's kernels are not available: compare a copy then. Blocks for a minute at most. Throws col::Error: io, timeout.
std::optional<Difference> compare_on_gpu(const void* left, const void* right, std::size_t count,
                                         std::size_t element_bytes, int device);

// Memory of the GPU that is current in the thread that makes it. Thread safe for different buffers.
class GpuBuffer {
 public:
  // Whether the memory is kept for the next buffer, until the end of the process. A GPU frees memory only after all its
  // work has ended. This work may wait for other ranks, and these for this one. So `no` is only for callers with
  // nothing in flight.
  enum class Keep : std::uint8_t { yes, no };

  // Not filled. Throws col::Error: unavailable if no GPU is current, resource.
  explicit GpuBuffer(std::size_t bytes, Keep keep = Keep::yes);
  ~GpuBuffer();
  GpuBuffer(const GpuBuffer&) = delete;
  GpuBuffer& operator=(const GpuBuffer&) = delete;

  std::byte* data() const noexcept { return static_cast<std::byte*>(memory_.get()); }
  std::size_t size() const noexcept { return size_; }
  Device device() const noexcept { return {Device::Type::cuda, device_}; }
  // As the copies above. Requires: within the buffer.
  void write(std::size_t offset, std::span<const std::byte> bytes) { copy_to_gpu(data() + offset, bytes, device_); }
  void read(std::size_t offset, std::span<std::byte> bytes) const { copy_from_gpu(bytes, data() + offset, device_); }
  // The bytes in which it differs from these, which are copied to the GPU. As compare_on_gpu(). Requires: equal sizes.
  std::optional<Difference> compare(std::span<const std::byte> bytes) const;

 private:
  Keep keep_;
  int device_ = 0;
  std::size_t size_ = 0;
  std::shared_ptr<void> memory_;  // not shared with others: what DeviceMemory returns
};

}  // namespace col::tools

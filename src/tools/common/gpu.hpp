// Memory of GPUs, for tools that fill buffers there and look at what has become of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <col/backend.hpp>
#include <col/group.hpp>

namespace col::tools {

// The GPUs of this host. Loads what there is to load. Throws col::Error, unavailable: why there are none.
DeviceMemory& gpus();
// Why there are none, or why NCCL cannot be used; empty when there are, and it can. Found out by a child process: for a
// caller that must stay as it is, with one thread and without CUDA, as those who start ranks must. Block for a minute
// at most.
std::string why_no_gpus();
std::string why_no_nccl();

// The GPU that a rank works with: ranks of a host take them in turn, and share them when there are more ranks.
int gpu_of(const ContextSpec& rank);
// That GPU is current in this thread until the pointer is gone, which has to be in this thread.
std::shared_ptr<void> use_gpu(const ContextSpec& rank);

// Whether a text about GPUs is about stand-ins. What comes of these says nothing of GPUs: whatever is shown of it says
// so.
inline bool is_fake_gpu(std::string_view text) {
  return text.find("fake") != std::string_view::npos;
}

// Which GPU it is.
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
  std::string host;  // tells hosts apart, and is not shown
  std::string gpu;
};
std::string gpus_by_rank(std::span<const RankOnGpu> ranks);

// The one that is current in this thread. Throws col::Error, unavailable: none is.
int current_gpu();

// Waits until the timer's stream has reached the stop, for a minute at most. Throws col::Error: io, timeout.
double seconds_of(DeviceTimer& timer);

// Copies between the host and the memory of a GPU, and blocks until that is done, for which there is a minute. Throw
// col::Error: io, timeout.
void copy_to_gpu(void* to, std::span<const std::byte> from, int device);
void copy_from_gpu(std::span<std::byte> to, const void* from, int device);

// In what two buffers of a GPU differ, found by the GPU: `count` elements of 1, 2, 4 or 8 bytes, bit by bit. Nothing
// where col's kernels are not there: look at a copy then. Blocks for a minute at most. Throws col::Error: io, timeout.
std::optional<Difference> compare_on_gpu(const void* left, const void* right, std::size_t count,
                                         std::size_t element_bytes, int device);

// Memory of the GPU that is current in the thread that makes it. Thread safe: different buffers.
class GpuBuffer {
 public:
  // Whether it is kept for the next buffer, to the end of the process. A GPU takes memory back only when it has done
  // all that it was given, which may wait for other ranks, and these for this one: `no` is for who has nothing in
  // flight.
  enum class Keep : std::uint8_t { yes, no };

  // Not filled. Throws col::Error: unavailable where no GPU is current, resource.
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
  // In which bytes it differs from these, which the GPU gets for it. As compare_on_gpu(). Requires: as many.
  std::optional<Difference> compare(std::span<const std::byte> bytes) const;

 private:
  Keep keep_;
  int device_ = 0;
  std::size_t size_ = 0;
  std::shared_ptr<void> memory_;  // shared with nobody: what DeviceMemory gives
};

}  // namespace col::tools

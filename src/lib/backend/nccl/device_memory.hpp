// The memory of this host's GPUs, for calls whose buffers are in another kind of memory than their group moves.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <col/backend.hpp>

#include "backend/nccl/device.hpp"

namespace col::nccl_backend {

class GpuHostMemory {
 public:
  GpuHostMemory(const CudaDriver& cuda, std::size_t bytes);
  ~GpuHostMemory();
  GpuHostMemory(const GpuHostMemory&) = delete;
  GpuHostMemory& operator=(const GpuHostMemory&) = delete;
  void* get() const noexcept { return memory_; }

 private:
  const CudaDriver& cuda_;
  void* memory_ = nullptr;
};

class CudaMemory final : public DeviceMemory {
 public:
  explicit CudaMemory(const CudaDriver& cuda) : cuda_(cuda) {}

  int devices() const override { return cuda_.devices; }
  std::optional<int> current() const override;
  std::shared_ptr<void> make_current(int device) override;
  std::string name(int device) override;
  std::string bus(int device) override;
  std::optional<int> device_of(const void* memory, std::size_t bytes, int device) override;
  std::shared_ptr<void> allocate(int device, std::size_t bytes) override;
  std::shared_ptr<void> allocate_host(int device, std::size_t bytes) override;
  bool is_captured(int device, Stream stream) override;
  std::unique_ptr<DeviceCopy> copy(void* to, const void* from, std::size_t bytes, int device, Stream stream) override;
  std::unique_ptr<DeviceComparison> compare(const void* left, const void* right, std::size_t count,
                                            std::size_t element_bytes, int device, Stream stream) override;
  std::unique_ptr<DeviceTimer> make_timer(int device) override;
  std::size_t cache_bytes(int device) override;
  void synchronize(int device, WaitContext& wait) override;

 private:
  class Gpu;

  std::shared_ptr<Gpu> gpu(int device);

  const CudaDriver& cuda_;
  std::mutex mutex_;                          // guards what follows
  std::map<int, std::shared_ptr<Gpu>> gpus_;  // the GPUs used so far; shared with the memory that is on them
};

}  // namespace col::nccl_backend

// Compares buffers in the memory of a GPU by a kernel of ours.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <col/backend.hpp>

#include "backend/nccl/device.hpp"
#include "backend/nccl/device_memory.hpp"
#include "backend/nccl/kernels.hpp"
#include "backend/nccl/kernels/arguments.hpp"

namespace col::nccl_backend {

// What one GPU needs for comparisons. Made and destroyed within a GpuDevice::Scope of its device. Thread safe.
class Comparer {
 public:
  explicit Comparer(const GpuDevice& device) : device_(device), kernels_(device.cuda()) {}

  // Whether there are kernels for comparisons.
  bool is_able() const noexcept { return kernels_.are_loaded(); }

  // The result of a comparison: where the kernel writes it, and where the host reads it.
  struct Found {
    explicit Found(const CudaDriver& cuda)
        : on_gpu(cuda, sizeof(CompareResult)), on_host(cuda, sizeof(CompareResult)), ended(cuda) {}
    GpuMemory on_gpu;
    GpuHostMemory on_host;
    GpuEvent ended;
  };
  // Starts a comparison in the stream. Requires: is_able(), and the device is current.
  std::unique_ptr<Found> start(const CompareArguments& what, std::size_t element_bytes, CUstream stream);
  // Takes it back for the next comparison, after this one has ended.
  void take_back(std::unique_ptr<Found> found);
  // Gives it up, if it is not known when the comparison ends.
  void abandon(std::unique_ptr<Found> found);

 private:
  const GpuDevice& device_;
  const Kernels kernels_;
  std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<Found>> idle_, abandoned_;
};

class CudaComparison final : public DeviceComparison {
 public:
  // `comparer` is shared with its device, and keeps the device started. Requires: `found` comes from it, and `device`
  // is its device.
  CudaComparison(std::shared_ptr<Comparer> comparer, const GpuDevice& device, std::unique_ptr<Comparer::Found> found);
  ~CudaComparison() override;
  CudaComparison(const CudaComparison&) = delete;
  CudaComparison& operator=(const CudaComparison&) = delete;

  std::optional<Difference> result() override;

 private:
  const std::shared_ptr<Comparer> comparer_;
  const GpuDevice& device_;
  std::unique_ptr<Comparer::Found> found_;
  bool done_ = false;
};

}  // namespace col::nccl_backend

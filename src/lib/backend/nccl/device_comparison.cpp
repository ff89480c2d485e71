#include "backend/nccl/device_comparison.hpp"

#include <utility>

namespace col::nccl_backend {

std::unique_ptr<Comparer::Found> Comparer::start(const CompareArguments& what, std::size_t element_bytes,
                                                 CUstream stream) {
  const CudaDriver& cuda = device_.cuda();
  std::unique_ptr<Found> found;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      found = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (found == nullptr) found = std::make_unique<Found>(cuda);
  const auto result = reinterpret_cast<CUdeviceptr>(found->on_gpu.get());
  cuda.check(cuda.MemsetD8Async(result, 0, sizeof(CompareResult), stream), "cannot zero memory of the GPU");
  CompareArguments arguments = what;
  arguments.result = static_cast<CompareResult*>(found->on_gpu.get());
  if (arguments.count > 0) kernels_.compare(element_bytes, arguments, stream);
  cuda.check(
      cuda.MemcpyAsync(reinterpret_cast<CUdeviceptr>(found->on_host.get()), result, sizeof(CompareResult), stream),
      "cannot copy from the GPU to the host");
  found->ended.record(stream);
  return found;
}

void Comparer::take_back(std::unique_ptr<Found> found) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(found));
}

void Comparer::abandon(std::unique_ptr<Found> found) {
  const std::lock_guard lock(mutex_);
  abandoned_.push_back(std::move(found));
}

CudaComparison::CudaComparison(std::shared_ptr<Comparer> comparer, const GpuDevice& device,
                               std::unique_ptr<Comparer::Found> found)
    : comparer_(std::move(comparer)), device_(device), found_(std::move(found)) {}

CudaComparison::~CudaComparison() {
  done_ ? comparer_->take_back(std::move(found_)) : comparer_->abandon(std::move(found_));
}

std::optional<Difference> CudaComparison::result() {
  const GpuDevice::Scope scope(device_);
  if (!found_->ended.done()) return std::nullopt;
  done_ = true;
  const auto& found = *static_cast<const CompareResult*>(found_->on_host.get());
  if (found.count == 0) return Difference();
  return Difference{.count = found.count, .first = ~found.first_inverted};
}

}  // namespace col::nccl_backend

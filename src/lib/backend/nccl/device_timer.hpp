// Time on a GPU's own clock, between two events in a stream.
#pragma once

#include <memory>
#include <optional>

#include <col/backend.hpp>

#include "backend/nccl/device.hpp"

namespace col::nccl_backend {

class CudaTimer final : public DeviceTimer {
 public:
  // `device` is shared with others that keep it started.
  explicit CudaTimer(std::shared_ptr<const GpuDevice> device);
  ~CudaTimer() override;
  CudaTimer(const CudaTimer&) = delete;
  CudaTimer& operator=(const CudaTimer&) = delete;

  Stream stream() const override { return {stream_->get()}; }
  void start() override;
  void stop() override;
  std::optional<double> seconds() override;

 private:
  const std::shared_ptr<const GpuDevice> device_;
  std::unique_ptr<GpuStream> stream_;
  std::unique_ptr<GpuEvent> begin_, end_;
};

}  // namespace col::nccl_backend

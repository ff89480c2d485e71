// The end of an operation, as other streams wait for it.
#pragma once

#include <memory>

#include <col/backend.hpp>

#include "backend/nccl/device.hpp"

namespace col::nccl_backend {

class GpuEnd final : public DeviceEnd {
 public:
  // `event` is recorded behind the operation; shared with the channel, which uses it again if nobody else has it.
  // `is_captured`: into a graph.
  GpuEnd(std::shared_ptr<const GpuDevice> device, std::shared_ptr<const GpuEvent> event, bool is_captured);
  ~GpuEnd() override;
  GpuEnd(const GpuEnd&) = delete;
  GpuEnd& operator=(const GpuEnd&) = delete;

  void hold_up(Stream stream) const override;

 private:
  const std::shared_ptr<const GpuDevice> device_;  // shared: the end may outlive the channel
  std::shared_ptr<const GpuEvent> event_;
  const bool is_captured_;
};

}  // namespace col::nccl_backend

// The end of an operation, as other streams wait for it.
#pragma once

#include <memory>
#include <utility>

#include <col/device.hpp>

#include "backend/nccl/device.hpp"

namespace col::nccl_backend {

// One that may outlive its channel: whoever is the last to have it need not have made the device's context current.
std::shared_ptr<GpuEvent> make_shared_event(std::shared_ptr<const GpuDevice> device);

class GpuEnd final : public DeviceEnd {
 public:
  // `event` is recorded behind the operation, and comes from make_shared_event(); shared with the channel, which uses
  // it again if nobody else has it. `is_captured`: into a graph.
  GpuEnd(std::shared_ptr<const GpuDevice> device, std::shared_ptr<const GpuEvent> event, bool is_captured)
      : device_(std::move(device)), event_(std::move(event)), is_captured_(is_captured) {}

  void hold_up(Stream stream) const override;

 private:
  const std::shared_ptr<const GpuDevice> device_;  // shared: the end may outlive the channel
  const std::shared_ptr<const GpuEvent> event_;
  const bool is_captured_;
};

}  // namespace col::nccl_backend

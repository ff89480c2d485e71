#include "backend/nccl/device_timer.hpp"

#include <exception>
#include <utility>

namespace col::nccl_backend {

CudaTimer::CudaTimer(std::shared_ptr<const GpuDevice> device) : device_(std::move(device)) {
  const GpuDevice::Scope scope(*device_);
  stream_ = std::make_unique<GpuStream>(device_->cuda());
  begin_ = std::make_unique<GpuEvent>(device_->cuda(), GpuEvent::Timing::yes);
  end_ = std::make_unique<GpuEvent>(device_->cuda(), GpuEvent::Timing::yes);
}

CudaTimer::~CudaTimer() {
  try {
    const GpuDevice::Scope scope(*device_);
    end_.reset();
    begin_.reset();
    stream_.reset();
  } catch (const std::exception&) {  // the driver is shutting down, and takes back everything itself
    (void)end_.release();
    (void)begin_.release();
    (void)stream_.release();
  }
}

void CudaTimer::start() {
  const GpuDevice::Scope scope(*device_);
  begin_->record(stream_->get());
}

void CudaTimer::stop() {
  const GpuDevice::Scope scope(*device_);
  end_->record(stream_->get());
}

std::optional<double> CudaTimer::seconds() {
  const GpuDevice::Scope scope(*device_);
  if (!end_->done()) return std::nullopt;
  return end_->seconds_since(*begin_);
}

}  // namespace col::nccl_backend

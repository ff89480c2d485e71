#include "backend/nccl/gpu_end.hpp"

#include <memory>
#include <utility>

#include <fmt/format.h>

#include <col/error.hpp>

namespace col::nccl_backend {

// In a forked child, or when the driver is shutting down, release_on() does not free the event.
std::shared_ptr<GpuEvent> make_shared_event(std::shared_ptr<const GpuDevice> device) {
  auto event = std::make_unique<GpuEvent>(device->cuda());
  return {event.release(), [device = std::move(device)](GpuEvent* last) {
            std::unique_ptr<GpuEvent> owner(last);
            release_on(*device, owner);
          }};
}

// Checks first what the driver would refuse: the driver refuses it only after it has spoiled the capture.
void GpuEnd::hold_up(Stream stream) const {
  const GpuDevice::Scope scope(*device_);
  const bool by_default = is_default(stream);
  if (is_captured_ && by_default)
    throw Error(ErrorCode::invalid_argument,
                "the operation is part of a graph, and the default stream cannot be: name a stream that may join the "
                "capture");
  if (by_default && !is_default_open(*device_))
    throw Error(ErrorCode::invalid_argument,
                "a stream is being captured that is ordered with the default stream, which can wait for nothing "
                "meanwhile: name a stream of your own, or wait after the capture");
  if (!is_captured_ && is_captured(stream, *device_))
    throw Error(
        ErrorCode::invalid_argument,
        "the stream is being captured, and the operation is no part of the graph: wait for it before the capture "
        "begins, or start it in a stream of the capture");
  require_usable(stream);
  const CudaDriver& cuda = device_->cuda();
  const CUresult result =
      cuda.StreamWaitEvent(static_cast<CUstream>(stream.handle), event_->get(), CU_EVENT_WAIT_DEFAULT);
  // The first is the documented answer, the second that of driver 580.159.
  if (is_captured_ && (result == CUDA_ERROR_CAPTURED_EVENT || result == CUDA_ERROR_INVALID_VALUE))
    throw Error(
        ErrorCode::invalid_argument,
        "the operation is part of a graph whose capture has ended: it runs when the graph is launched, so let the "
        "stream wait for that");
  if (result == CUDA_ERROR_INVALID_HANDLE)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the stream is none that this process has; pass one of GPU {} that has not been destroyed",
                            device_->ordinal()));
  cuda.check(result, "cannot let a CUDA stream wait");
}

}  // namespace col::nccl_backend

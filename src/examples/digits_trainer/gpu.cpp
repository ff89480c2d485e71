#include "gpu.hpp"

#include <chrono>
#include <thread>

#include <col/channel.hpp>
#include <col/device.hpp>
#include <col/job.hpp>

namespace digits {
namespace {

// col's own way to the memory of GPUs, so that this program needs no CUDA. One with the CUDA runtime would use
// cudaSetDevice, cudaMalloc and cudaMemcpy.
col::DeviceMemory& gpus() {
  col::BackendFactory* const nccl = col::find_backend("nccl");
  if (nccl == nullptr) throw col::Error(col::ErrorCode::unavailable, "this build of col has no backend for GPUs");
  return nccl->device_memory();
}

}  // namespace

std::string why_no_gpu() {
  try {
    gpus();
    return {};
  } catch (const col::Error& error) {
    return error.message();
  }
}

Gpu::Gpu(const col::ContextSpec& rank)
    : device_(rank.local_rank % gpus().devices()), current_(gpus().make_current(device_)) {}

std::string Gpu::text() const {
  return gpus().name(device_) + " " + gpus().bus(device_);
}

GpuFloats::GpuFloats(const Gpu& gpu, std::size_t count)
    : device_(gpu.device()), count_(count), memory_(gpus().allocate(device_, count * sizeof(float))) {}

col::TensorView GpuFloats::view() const {
  return {memory_.get(), count_, col::DType::float32, {col::Device::Type::cuda, device_}};
}

void GpuFloats::set(std::span<const float> values) {
  copy(memory_.get(), values.data());
}

void GpuFloats::get(std::span<float> values) const {
  copy(values.data(), memory_.get());
}

void GpuFloats::copy(void* to, const void* from) const {
  const auto copy = gpus().copy(to, from, count_ * sizeof(float), device_, {});
  const col::Deadline deadline = col::Deadline::after(std::chrono::minutes(1));
  while (!copy->done()) {
    if (deadline.expired()) throw col::Error(col::ErrorCode::timeout, "a copy between the host and the GPU hangs");
    std::this_thread::yield();
  }
}

}  // namespace digits

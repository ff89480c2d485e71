#include "backend/nccl/device_set.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace col::nccl_backend {

DeviceSet::DeviceSet(const CudaDriver& cuda, std::span<const int> devices, Priority priority,
                     std::function<void()> look, Communicator::Rest rest)
    : cuda_(cuda), priority_(priority), look_(std::move(look)), rest_(std::move(rest)) {
  for (const int ordinal : devices) {
    Gpu& gpu = gpus_.emplace_back();
    gpu.device = std::make_shared<const GpuDevice>(cuda, ordinal);
  }
}

DeviceSet::~DeviceSet() {
  end_all(communicators());
  for (Gpu& gpu : gpus_) {
    gpu.communicator.reset();
    release_on(*gpu.device, gpu.before, gpu.ended, gpu.stream);
  }
}

bool DeviceSet::is_of(std::span<const int> devices) const {
  return std::equal(gpus_.begin(), gpus_.end(), devices.begin(), devices.end(),
                    [](const Gpu& gpu, int ordinal) { return gpu.device->ordinal() == ordinal; });
}

std::vector<Communicator*> DeviceSet::communicators() const {
  std::vector<Communicator*> all;
  for (const Gpu& gpu : gpus_) {
    if (gpu.communicator) all.push_back(gpu.communicator.get());
  }
  return all;
}

void DeviceSet::connect(const NcclLibrary& nccl, const Membership& first, WaitContext& wait) {
  for (Gpu& gpu : gpus_) {
    const GpuDevice::Scope scope(*gpu.device);
    gpu.stream = std::make_unique<GpuStream>(cuda_, priority_);
    gpu.before = std::make_unique<GpuEvent>(cuda_);
    gpu.ended = std::make_unique<GpuEvent>(cuda_);
  }
  const std::shared_ptr<Launcher> launcher = Communicator::make_launcher(nccl, *gpus_.front().device);
  Together together(nccl);
  Membership membership = first;
  for (Gpu& gpu : gpus_) {
    gpu.communicator = std::make_unique<Communicator>(nccl, *gpu.device, membership, launcher);
    together.add(gpu.communicator->connection());
    ++membership.rank;
  }
  try {
    begin("cannot connect the GPUs", std::move(together));
    for (Gpu& gpu : gpus_) {
      gpu.communicator->on_wait(
          [this] {
            look_();
            check();
          },
          rest_);
    }
    for (Gpu& gpu : gpus_) gpu.communicator->await_connection(wait);
  } catch (...) {
    abort_all(communicators());
    throw;
  }
}

// Throws what has gone wrong on any of them: the others may wait for it for ever.
void DeviceSet::check() const {
  for (const Gpu& gpu : gpus_) gpu.communicator->check();
}

bool DeviceSet::done() const {
  return std::all_of(gpus_.begin(), gpus_.end(), [](const Gpu& gpu) {
    const GpuDevice::Scope scope(*gpu.device);
    return gpu.ended->done();
  });
}

// One of them gives it for all.
void DeviceSet::begin(std::string_view doing, Together together) {
  gpus_.front().communicator->begin(doing, std::move(together));
  for (Gpu& gpu : std::span(gpus_).subspan(1)) gpu.communicator->note_begun(doing);
}

void DeviceSet::run(std::string_view doing, const Issue& issue, WaitContext& wait) {
  for (Gpu& gpu : gpus_) {
    const GpuDevice::Scope scope(*gpu.device);
    gpu.before->record(CU_STREAM_LEGACY);
    gpu.before->hold_up(gpu.stream->get());
  }
  Together together(gpus_.front().communicator->nccl());
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    const Gpu& gpu = gpus_[i];
    together.add([device = gpu.device, call = issue(i, gpu.communicator->get(), gpu.stream->get())] {
      const GpuDevice::Scope scope(*device);
      return call();
    });
  }
  begin(doing, std::move(together));
  for (Gpu& gpu : gpus_) gpu.communicator->settle(wait);
  for (Gpu& gpu : gpus_) {
    const GpuDevice::Scope scope(*gpu.device);
    gpu.ended->record(gpu.stream->get());
  }
  wait.describe("the GPUs");
  for (PollPause pause; !done(); pause(wait)) {
    check();
    look_();
  }
}

}  // namespace col::nccl_backend

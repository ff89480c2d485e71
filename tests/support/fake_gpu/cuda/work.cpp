#include "support/fake_gpu/cuda/work.hpp"

#include <algorithm>

#include "support/fake_gpu/cuda/capture.hpp"
#include "support/fake_gpu/cuda/entry.hpp"
#include "support/fake_gpu/cuda/module.hpp"

using namespace fake_gpu;

namespace {

using Streams = std::vector<std::shared_ptr<Stream>>;

constexpr size_t kPage = 4096;

// All streams are in one capture, or none is.
CUresult capture_launch(const Streams& streams, const Launch& launch) {
  auto capture = streams.front()->capture;
  for (const auto& stream : streams) {
    if (stream->capture == capture) continue;
    if (capture != nullptr) capture->invalid = true;
    if (stream->capture != nullptr) stream->capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  for (const auto& stream : streams) streams.front()->frontier.insert(stream->frontier.begin(), stream->frontier.end());
  add_node(*streams.front(), launch.work, launch.label);
  for (const auto& stream : streams) stream->frontier = streams.front()->frontier;
  return CUDA_SUCCESS;
}

bool captured(const Streams& streams) {
  return std::any_of(streams.begin(), streams.end(), [](const auto& stream) { return stream->capture != nullptr; });
}

}  // namespace

CUresult fake_gpu_start(void) {
  Machine& all = machine();
  if (all.lost) return CUDA_ERROR_NOT_INITIALIZED;
  {
    Lock lock(all.mutex);
    if (all.initialized) return CUDA_SUCCESS;
    const CUresult made = make_devices(all);
    if (made != CUDA_SUCCESS) return made;
    all.start();
  }
  load_kernels_of_environment();
  return CUDA_SUCCESS;
}

int fake_gpu_current_device(void) {
  Machine& all = machine();
  Lock lock(all.mutex);
  auto context = current_context(all);
  return context == nullptr ? 0 : context->device;
}

int fake_gpu_device_count(void) {
  Machine& all = machine();
  Lock lock(all.mutex);
  return static_cast<int>(all.devices.size());
}

int fake_gpu_physical_device(int device) {
  Machine& all = machine();
  Lock lock(all.mutex);
  return all.devices[device].physical;
}

CUresult fake_gpu_retain_device(int device) {
  Machine& all = machine();
  Lock lock(all.mutex);
  CUcontext handle;
  return retain_primary(all, device, &handle);
}

CUresult fake_gpu_release_device(int device) {
  Machine& all = machine();
  Lock lock(all.mutex);
  return release_primary(all, lock, device);
}

CUresult fake_gpu_launch(const Launch& launch, std::shared_ptr<void>& last) {
  Machine& all = machine();
  Lock lock(all.mutex);
  auto context = all.devices[launch.device].primary;
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (context->broken != CUDA_SUCCESS) return context->broken;
  Streams streams;
  for (CUstream handle : launch.streams) {
    auto stream = find_stream(all, handle, context);
    if (stream == nullptr || stream->context() != context) return CUDA_ERROR_INVALID_HANDLE;
    if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
  }
  if (captured(streams)) return capture_launch(streams, launch);

  std::vector<Ticket> after;
  if (last != nullptr) after.push_back(*std::static_pointer_cast<Ticket>(last));
  for (const auto& stream : streams) {
    if (stream != streams.front()) after.push_back(stream->last());
  }
  auto ticket = std::make_shared<Ticket>();
  const CUresult result = enqueue(all, *streams.front(), launch.work, launch.label, ticket.get(), std::move(after));
  if (result != CUDA_SUCCESS) return result;
  for (const auto& stream : streams) {
    if (stream != streams.front()) enqueue(all, *stream, nullptr, "a wait for a launch", nullptr, {*ticket});
  }
  last = std::move(ticket);
  return CUDA_SUCCESS;
}

CUresult fake_gpu_look_at_event(void) {
  Machine& all = machine();
  Lock lock(all.mutex);
  return forbid_unsafe_call(all);
}

Whereabouts fake_gpu_locate(uint64_t address, size_t bytes) {
  Machine& all = machine();
  Lock lock(all.mutex);
  const int device = all.device_of(address);
  if (device >= 0) return {all.devices[device].memory->host_view(address, bytes), device};
  const HostRange* range = all.host.find(address);
  if (range == nullptr || bytes > range->bytes - (address - range->start)) return {nullptr, -1};
  return {reinterpret_cast<char*>(address), -1};
}

CUresult fake_gpu_allocate(int device, size_t bytes, uint64_t* address) {
  Machine& all = machine();
  Lock lock(all.mutex);
  const CUresult allowed = forbid_unsafe_call(all);
  if (allowed != CUDA_SUCCESS) return allowed;
  auto found = all.devices[device].memory->allocate(bytes, kPage);
  if (!found) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = *found;
  return CUDA_SUCCESS;
}

CUresult fake_gpu_free(uint64_t address) {
  Machine& all = machine();
  Lock lock(all.mutex);
  const int device = all.device_of(address);
  if (device < 0) return CUDA_ERROR_INVALID_VALUE;
  const auto context = all.devices[device].primary;
  if (harsh() && context != nullptr) drain(all, lock, *context, "ncclMemFree waits for the device, which");
  DeviceMemory* memory = all.memory_of(address);
  return memory != nullptr && memory->free(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

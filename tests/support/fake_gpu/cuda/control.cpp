#include "support/fake_gpu/control.hpp"

#include <algorithm>

#include "support/fake_gpu/cuda/capture.hpp"
#include "support/fake_gpu/cuda/entry.hpp"
#include "support/fake_gpu/cuda/module.hpp"

using namespace fake_gpu;

namespace {

size_t context_retains(const Machine& machine) {
  size_t retains = 0;
  for (const Device& device : machine.devices) {
    if (device.primary != nullptr) retains += device.primary->retained;
  }
  return retains;
}

}  // namespace

void fake_gpu_fail(const char* name, int code, int nth) {
  call_log().fail(name, code, nth);
}

size_t fake_gpu_calls(const char* name) {
  return call_log().calls(name);
}

const char* fake_gpu_called(void) {
  thread_local std::string names;
  names = call_log().names();
  return names.c_str();
}

void fake_gpu_reset(void) {
  call_log().reset();
  fake_gpu_hold_streams(0);
  fake_gpu_hold_copies_to_device(0);
}

size_t fake_gpu_alive(const char* what) {
  Machine& all = machine();
  Lock lock(all.mutex);
  const std::string word = what;
  if (word == "contexts") return context_retains(all);
  if (word == "streams") return all.streams.size();
  if (word == "high_priority_streams") {
    return static_cast<size_t>(std::ranges::count_if(
        all.streams.all(), [](const auto& entry) { return entry.second->priority() == kGreatestPriority; }));
  }
  if (word == "events") return all.events.size();
  if (word == "modules") return all.modules.size();
  if (word == "graphs") return all.graphs.size();
  if (word == "graph_execs") return all.graph_execs.size();
  if (word == "host_memory") return all.host.count();
  size_t allocations = 0, bytes = 0;
  for (const Device& device : all.devices) {
    allocations += device.memory->allocations();
    bytes += device.memory->used();
  }
  if (word == "device_memory") return allocations;
  if (word == "device_bytes") return bytes;
  die("fake_gpu_alive does not count '" + word + "'");
}

void fake_gpu_break_context(int device, int code) {
  Machine& all = machine();
  Lock lock(all.mutex);
  if (device < 0 || device >= static_cast<int>(all.devices.size()) || all.devices[device].primary == nullptr) {
    die("fake_gpu_break_context: the device has no context");
  }
  all.devices[device].primary->broken = static_cast<CUresult>(code);
  all.changed.notify_all();
}

void fake_gpu_hold_streams(int held) {
  Machine& all = machine();
  Lock lock(all.mutex);
  all.held = held != 0;
  all.changed.notify_all();
}

void fake_gpu_hold_copies_to_device(int held) {
  Machine& all = machine();
  Lock lock(all.mutex);
  all.holds_copies_to_device = held != 0;
  all.changed.notify_all();
}

void* fake_gpu_host_view(uint64_t pointer, size_t bytes) {
  Machine& all = machine();
  Lock lock(all.mutex);
  DeviceMemory* memory = all.memory_of(pointer);
  if (memory != nullptr) return memory->host_view(pointer, bytes);
  // Kernels reach page-locked memory by the host's address.
  const HostRange* range = all.host.find(pointer);
  if (range == nullptr || bytes > range->bytes - (pointer - range->start)) return nullptr;
  return reinterpret_cast<void*>(pointer);
}

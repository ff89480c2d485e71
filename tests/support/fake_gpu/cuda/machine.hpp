// Everything the stand-in for the driver knows: one mutex guards it, one condition tells of every change.
#pragma once

#include <cuda.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "support/fake_gpu/common/call_log.hpp"
#include "support/fake_gpu/common/settings.hpp"
#include "support/fake_gpu/cuda/device_memory.hpp"
#include "support/fake_gpu/cuda/handle_table.hpp"
#include "support/fake_gpu/cuda/host_memory.hpp"

namespace fake_gpu {

class Stream;
struct Event;
struct Graph;
struct GraphExec;
struct Capture;
struct Module;
struct Function;
struct KernelEntry;

using Lock = std::unique_lock<std::mutex>;

// A device's primary context, from its first retain to its last release.
struct Context {
  int device = 0;
  CUcontext handle = nullptr;
  int retained = 0;
  bool destroyed = false;
  CUresult broken = CUDA_SUCCESS;  // what every call returns once work in it has failed
  std::shared_ptr<Stream> null_stream;
  std::vector<std::shared_ptr<Stream>> streams;  // the program's, and destroyed ones that have work, in no order
};

struct Device {
  int physical;  // before CUDA_VISIBLE_DEVICES
  std::unique_ptr<DeviceMemory> memory;
  std::shared_ptr<Context> primary;
};

struct Machine {
  Machine();

  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<int> process{0};  // that called cuInit; a child of it has no driver
  bool initialized = false;
  bool held = false;
  std::chrono::microseconds delay;  // before each piece of work: FAKE_GPU_DELAY_US
  int driver_version;
  std::vector<Device> devices;
  HostMemory host;
  HandleTable<Context, CUcontext> contexts{0x11};
  HandleTable<Stream, CUstream> streams{0x12};
  HandleTable<Event, CUevent> events{0x13};
  HandleTable<Module, CUmodule> modules{0x14};
  HandleTable<Function, CUfunction> functions{0x15};
  HandleTable<Graph, CUgraph> graphs{0x16};
  HandleTable<GraphExec, CUgraphExec> graph_execs{0x17};
  std::vector<std::shared_ptr<Capture>> captures;  // going on, valid or not
  std::map<std::string, std::shared_ptr<KernelEntry>> kernels;

  DeviceMemory* memory_of(uint64_t address) const;  // null for host addresses
  int device_of(uint64_t address) const;            // -1 for host addresses
  void wait(Lock& lock, const std::string& what, const std::function<bool()>& done);
};

// One for the process, never destroyed: streams may still run when static objects are.
Machine& machine();
CallLog& call_log();

}  // namespace fake_gpu

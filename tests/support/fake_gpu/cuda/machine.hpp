// Everything the stand-in for the driver knows: one mutex guards it, one condition tells of every change.
#pragma once

#include <cuda.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "support/fake_gpu/common.hpp"
#include "support/fake_gpu/cuda/memory.hpp"

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

// Gives objects handles that cannot be followed as pointers and are never given twice.
//
// The real driver's handles are pointers: a stale one crashes, or is by chance a new object. Here it is an error.
template <typename T, typename Handle>
class HandleTable {
 public:
  // `kind` is the first part of the handle, so that a handle of one kind is no handle of another.
  explicit HandleTable(uintptr_t kind) : next_((kind << 40) + kStep) {}

  Handle add(std::shared_ptr<T> object) {
    Handle handle = reinterpret_cast<Handle>(next_);
    next_ += kStep;
    objects_.emplace(handle, std::move(object));
    return handle;
  }
  std::shared_ptr<T> find(Handle handle) const {
    auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }
  std::shared_ptr<T> take(Handle handle) {
    auto found = objects_.find(handle);
    if (found == objects_.end()) return nullptr;
    auto object = std::move(found->second);
    objects_.erase(found);
    return object;
  }
  template <typename Predicate>
  void remove_if(Predicate predicate) {
    std::erase_if(objects_, [&](const auto& entry) { return predicate(*entry.second); });
  }
  size_t size() const { return objects_.size(); }
  const std::map<Handle, std::shared_ptr<T>>& all() const { return objects_; }

 private:
  static constexpr uintptr_t kStep = 16;
  uintptr_t next_;
  std::map<Handle, std::shared_ptr<T>> objects_;
};

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
  std::atomic<bool> initialized{false};
  std::atomic<bool> lost{false};  // in a child of the process that called cuInit: it has no driver
  bool held = false;
  bool holds_copies_to_device = false;
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

  void start();                                     // all is there: cuInit has done its work
  DeviceMemory* memory_of(uint64_t address) const;  // null for host addresses
  int device_of(uint64_t address) const;            // -1 for host addresses
  void wait(Lock& lock, const std::string& what, const std::function<bool()>& done);
};

// One for the process, never destroyed: streams may still run when static objects are.
Machine& machine();
CallLog& call_log();

}  // namespace fake_gpu

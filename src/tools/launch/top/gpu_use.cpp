#include "launch/top/gpu_use.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <memory>

namespace col::launch {
namespace {

using Device = void*;

// As NVML defines them (nvmlProcessInfo_t, the second version, and nvmlUtilization_t).
struct Process {
  unsigned pid;
  unsigned long long memory_bytes;
  unsigned gpu_instance, compute_instance;
};
struct Utilization {
  unsigned gpu, memory;  // percent
};

constexpr int kSuccess = 0;
constexpr unsigned kMostProcesses = 256;
constexpr unsigned long long kUnknown = ~0ULL;

}  // namespace

struct GpuMeter::Library {
  void* handle = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*device)(unsigned, Device*) = nullptr;
  int (*utilization)(Device, Utilization*) = nullptr;
  int (*processes)(Device, unsigned*, Process*) = nullptr;

  template <class Function>
  bool find(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(::dlsym(handle, name));
    return function != nullptr;
  }
};

GpuMeter::GpuMeter() {
  auto library = std::make_unique<Library>();
  library->handle = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library->handle == nullptr) return;
  int (*init)() = nullptr;
  const bool is_whole = library->find("nvmlInit_v2", init) && library->find("nvmlShutdown", library->shutdown) &&
                        library->find("nvmlDeviceGetCount_v2", library->count) &&
                        library->find("nvmlDeviceGetHandleByIndex_v2", library->device) &&
                        library->find("nvmlDeviceGetUtilizationRates", library->utilization) &&
                        library->find("nvmlDeviceGetComputeRunningProcesses_v3", library->processes);
  if (is_whole && init() == kSuccess)
    library_ = library.release();
  else
    ::dlclose(library->handle);
}

GpuMeter::~GpuMeter() {
  if (library_ == nullptr) return;
  library_->shutdown();
  ::dlclose(library_->handle);
  delete library_;
}

void GpuMeter::look() {
  uses_.clear();
  unsigned devices = 0;
  if (library_ == nullptr || library_->count(&devices) != kSuccess) return;
  for (unsigned i = 0; i < devices; ++i) {
    Device device = nullptr;
    std::array<Process, kMostProcesses> processes{};
    unsigned count = kMostProcesses;
    if (library_->device(i, &device) != kSuccess || library_->processes(device, &count, processes.data()) != kSuccess)
      continue;
    Utilization utilization{};
    const bool is_known = library_->utilization(device, &utilization) == kSuccess;
    for (unsigned j = 0; j < std::min(count, kMostProcesses); ++j) {
      GpuUse& use = uses_[static_cast<pid_t>(processes[j].pid)];
      if (processes[j].memory_bytes != kUnknown) use.memory_bytes += processes[j].memory_bytes;
      if (is_known) use.busy = std::max(use.busy.value_or(0), static_cast<int>(utilization.gpu));
    }
  }
}

std::optional<GpuUse> GpuMeter::of(pid_t pid) const {
  const auto found = uses_.find(pid);
  return found != uses_.end() ? std::optional(found->second) : std::nullopt;
}

}  // namespace col::launch

#include "launch/top/rates.hpp"

#include <dlfcn.h>
#include <sys/types.h>

#include <algorithm>
#include <array>
#include <memory>

namespace col::launch {
namespace {

// Of less time, a rate is chance.
constexpr std::uint64_t kLeastNs = 250'000'000;

RankRates between(const RankUse& before, const RankUse& now) {
  RankRates rates;
  const double seconds = static_cast<double>(now.at_ns - before.at_ns) / 1e9;
  if (before.calls && now.calls && *now.calls >= *before.calls) {
    rates.calls = (*now.calls - *before.calls) / seconds;
    rates.bytes = (now.bytes - before.bytes) / seconds;
    rates.waiting = std::clamp((now.waited - before.waited) / seconds, 0.0, 1.0);
  }
  if (before.cpu && now.cpu) {
    rates.cpu = std::max(0.0, *now.cpu - *before.cpu) / seconds;
    rates.queued = std::clamp((now.queued - before.queued) / seconds, 0.0, 1.0);
  }
  return rates;
}

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

RankRates RateMeter::rates_of(const RankStory& rank, bool is_here) {
  if (!rank.use) return {};
  const auto [found, is_new] = seen_.try_emplace(rank.rank, Seen{*rank.use, {}});
  Seen& seen = found->second;
  // A clock that has gone back is another one's: the rank was started on another host.
  if (!is_new && rank.use->at_ns < seen.use.at_ns) seen = {*rank.use, {}};
  if (rank.use->at_ns - seen.use.at_ns >= kLeastNs) seen = {*rank.use, between(seen.use, *rank.use)};
  RankRates rates = seen.rates;
  if (rank.use->cpu) rates.rss_bytes = rank.use->rss_bytes;
  if (is_here) rates.gpu = gpus_.of(rank.last ? static_cast<pid_t>(rank.last->pid) : rank.status.pid);
  return rates;
}

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

// What a GPU and NCCL give by themselves, to hold col's times against: copies between page-locked memory and the GPU,
// and a bare loop of ncclAllReduce. No test: it says how fast, on the machine that it runs on.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/nccl/device.hpp"
#include "backend/nccl/nccl_library.hpp"

namespace {

using namespace col::nccl_backend;
using Clock = std::chrono::steady_clock;

constexpr unsigned kLimitSeconds = 90;  // after which SIGALRM ends a process, whatever it waits for
constexpr std::size_t kMiB = std::size_t{1} << 20;

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

void finish(GpuEvent& event, CUstream stream) {
  event.record(stream);
  while (!event.done()) {
  }
}

// ---- Copies

class PageLocked {
 public:
  PageLocked(const CudaDriver& cuda, std::size_t bytes) : cuda_(cuda) {
    cuda.check(cuda.MemHostAlloc(&memory_, bytes, 0), "cannot allocate page-locked memory");
  }
  ~PageLocked() { cuda_.MemFreeHost(memory_); }
  PageLocked(const PageLocked&) = delete;
  PageLocked& operator=(const PageLocked&) = delete;
  void* get() const { return memory_; }

 private:
  const CudaDriver& cuda_;
  void* memory_ = nullptr;
};

// The median of some rounds in which each stream copies `bytes` in its direction.
double time_copies(const CudaDriver& cuda, std::size_t bytes, bool up, bool down) {
  const GpuMemory device_from(cuda, bytes), device_to(cuda, bytes);
  const PageLocked host_from(cuda, bytes), host_to(cuda, bytes);
  const GpuStream upward(cuda), downward(cuda);
  GpuEvent up_ended(cuda), down_ended(cuda);
  const auto copy = [&](void* to, void* from, CUstream stream) {
    cuda.check(cuda.MemcpyAsync(reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from), bytes, stream),
               "cannot copy");
  };
  std::vector<double> times;
  for (int round = 0; round < 12; ++round) {
    const auto start = Clock::now();
    if (up) copy(device_to.get(), host_from.get(), upward.get());
    if (down) copy(host_to.get(), device_from.get(), downward.get());
    finish(up_ended, upward.get());
    finish(down_ended, downward.get());
    if (round >= 2) times.push_back(us_since(start));
  }
  return median(times);
}

int measure_copies(std::size_t most) {
  const CudaDriver cuda;
  const GpuDevice device(cuda, 0);
  const GpuDevice::Scope scope(device);
  std::printf("Copies of page-locked memory, %s: GB/s of each direction\n", device.name().c_str());
  std::printf("%12s %10s %10s %14s\n", "bytes", "up", "down", "both at once");
  for (const std::size_t bytes : {kMiB / 16, kMiB, 16 * kMiB, 256 * kMiB}) {
    if (bytes > most) break;
    const double gb = static_cast<double>(bytes) / 1e3;  // per microsecond
    std::printf("%12zu %10.2f %10.2f %14.2f\n", bytes, gb / time_copies(cuda, bytes, true, false),
                gb / time_copies(cuda, bytes, false, true), gb / time_copies(cuda, bytes, true, true));
  }
  return 0;
}

// ---- NCCL

// What the ranks share; they are forked before any of them starts CUDA.
struct Shared {
  ncclUniqueId id[2];
  std::atomic<bool> has_id = false;
};

void must(const NcclLibrary& nccl, ncclResult_t result, const char* what) {
  if (result != ncclSuccess) throw std::runtime_error(std::string(what) + ": " + nccl.GetErrorString(result));
}

// What a call that returned `result` comes to, once NCCL has taken it.
void settle(const NcclLibrary& nccl, ncclComm_t communicator, ncclResult_t result, const char* what) {
  while (result == ncclInProgress) must(nccl, nccl.CommGetAsyncError(communicator, &result), what);
  must(nccl, result, what);
}

void measure_calls(const NcclLibrary& nccl, const CudaDriver& cuda, ncclComm_t communicator, std::size_t bytes,
                   int rounds, const char* form, bool prints) {
  const GpuMemory memory(cuda, bytes);
  const GpuStream stream(cuda);
  GpuEvent ended(cuda);
  std::vector<double> given, whole;
  for (int round = 0; round < rounds + 3; ++round) {
    const auto start = Clock::now();
    settle(nccl, communicator,
           nccl.AllReduce(memory.get(), memory.get(), bytes / sizeof(float), ncclFloat32, ncclSum, communicator,
                          stream.get()),
           "ncclAllReduce");
    const double taken = us_since(start);
    finish(ended, stream.get());
    if (round < 3) continue;
    given.push_back(taken);
    whole.push_back(us_since(start));
  }
  if (!prints) return;
  std::printf("%12zu %14s %8d %14.2f %14.2f\n", bytes, form, rounds, median(given), median(whole));
  std::fflush(stdout);
}

std::optional<std::string> variable(std::string_view name) {
  const char* const value = std::getenv(std::string(name).c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

void measure_nccl_rank(int rank, int ranks, std::size_t most, Shared& shared) {
  const CudaDriver cuda;
  const NcclLibrary nccl(variable);
  // As many ranks to a GPU as it takes.
  const GpuDevice device(cuda, rank % cuda.devices);
  const GpuDevice::Scope scope(device);
  if (rank == 0) {
    for (ncclUniqueId& id : shared.id) must(nccl, nccl.GetUniqueId(&id), "ncclGetUniqueId");
    shared.has_id = true;
    std::printf("ncclAllReduce in a bare loop: NCCL %s, %s, %d rank%s on %d GPU%s; medians in microseconds\n",
                nccl.version_text().c_str(), device.name().c_str(), ranks, ranks == 1 ? "" : "s",
                std::min(ranks, cuda.devices), std::min(ranks, cuda.devices) == 1 ? "" : "s");
    std::printf("%12s %14s %8s %14s %14s\n", "bytes", "communicator", "calls", "until taken", "until ended");
  }
  while (!shared.has_id) usleep(1000);
  for (const int blocking : {1, 0}) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = blocking;
    if (ranks > cuda.devices) config.maxCTAs = 4;  // as col does, so that all ranks' kernels find room
    ncclComm_t communicator = nullptr;
    const ncclResult_t begun = nccl.CommInitRankConfig(&communicator, ranks, shared.id[blocking], rank, &config);
    settle(nccl, communicator, begun, "ncclCommInitRankConfig");
    for (const auto& [bytes, rounds] :
         std::vector<std::pair<std::size_t, int>>{{8, 200}, {kMiB, 100}, {1024 * kMiB, 5}}) {
      if (bytes > most) break;
      measure_calls(nccl, cuda, communicator, bytes, rounds, blocking == 1 ? "blocking" : "non-blocking", rank == 0);
    }
    settle(nccl, communicator, nccl.CommFinalize(communicator), "ncclCommFinalize");
    must(nccl, nccl.CommDestroy(communicator), "ncclCommDestroy");
  }
}

int measure_nccl(int ranks, std::size_t most) {
  void* const page = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw std::bad_alloc();
  Shared& shared = *new (page) Shared;
  std::fflush(stdout);
  for (int rank = 0; rank < ranks; ++rank) {
    if (fork() != 0) continue;
    alarm(kLimitSeconds);
    try {
      measure_nccl_rank(rank, ranks, most, shared);
      std::fflush(stdout);
      _exit(0);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "gpu_bounds: rank %d: %s\n", rank, error.what());
      _exit(1);
    }
  }
  int code = 0, status = 0;
  while (wait(&status) > 0) {
    if (status != 0) code = 1;
  }
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  const auto number = [&](int place, unsigned long otherwise) {
    return argc > place ? std::strtoul(argv[place], nullptr, 10) : otherwise;
  };
  const auto ranks = static_cast<int>(number(2, 1));
  try {
    alarm(kLimitSeconds);
    if (what == "copies" && argc <= 3) return measure_copies(number(2, 256 * kMiB));
    if (what == "nccl" && ranks >= 1 && argc <= 4) return measure_nccl(ranks, number(3, 1024 * kMiB));
    if (what == "version" && argc == 2) return std::puts(NcclLibrary(variable).version_text().c_str()) < 0;
    if (what == "devices" && argc == 2) return std::printf("%d\n", CudaDriver().devices) < 0;
    std::fputs("usage: gpu_bounds copies [MOST_BYTES] | nccl [RANKS [MOST_BYTES]] | version | devices\n", stderr);
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_bounds: %s\n", error.what());
    return 1;
  }
}

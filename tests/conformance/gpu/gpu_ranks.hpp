// Ranks that have a GPU each, or share one, and arrays in the memory of those GPUs.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <sys/mman.h>

#include <col/col.hpp>

#include "backend/nccl/device.hpp"
#include "support/catch.hpp"
#include "support/outcomes.hpp"
#include "support/ranks.hpp"
#include "support/soon.hpp"

namespace col::test {

// The driver: a stand-in's, or that of this machine.
inline const nccl_backend::CudaDriver& cuda() {
  static const nccl_backend::CudaDriver kDriver;
  return kDriver;
}

// COL_TEST_SHARED_GPU=1: all ranks are on the first GPU, whatever GPU a case gives them. They are processes then: in
// one process, what a rank asks of the driver may wait for another rank's kernel, which waits for the first rank. Each
// case runs in a process of its own (gpu_suite.sh), which must not start CUDA: its ranks would have no driver.
inline bool ranks_share_gpu() {
  static const char* const kSet = std::getenv("COL_TEST_SHARED_GPU");
  return kSet != nullptr && std::string_view(kSet) == "1";
}
inline int gpu_of(int ordinal) {
  return ranks_share_gpu() ? 0 : ordinal;
}

// What this machine lacks for the rest of a case.
struct TooFewGpus {
  int needed;
};

// Called by the case itself, not by its ranks. Throws TooFewGpus. need_own_gpus(): where ranks cannot share one.
inline void need_own_gpus(int count) {
  if (ranks_share_gpu() || count > cuda().devices) throw TooFewGpus{count};
}
inline void need_gpus(int count) {
  if (!ranks_share_gpu()) need_own_gpus(count);
}

// The ranks as threads; where they share a GPU, as processes.
inline std::vector<Outcome> run_ranks(int ranks, const Body& body) {
  return ranks_share_gpu() ? run_processes(ranks, body) : run_threads(ranks, body);
}

// Makes a GPU the thread's current one, for as long as it lives.
class OnGpu {
 public:
  explicit OnGpu(int ordinal) : device_(cuda(), gpu_of(ordinal)), scope_(device_) {}
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;

 private:
  nccl_backend::GpuDevice device_;
  nccl_backend::GpuDevice::Scope scope_;
};

// Where an array is that is on no GPU.
inline constexpr int kHost = -1;

template <class Condition>
void expect_soon(const std::string& what, const Condition& condition) {
  expect(soon(condition), what);
}

// An array on the GPU of that number, or in host memory.
template <class T>
class GpuArray {
 public:
  GpuArray(int place, const std::vector<T>& values) : place_(place), count_(values.size()) {
    if (count_ == 0) return;
    if (place_ == kHost) {
      host_ = std::make_unique_for_overwrite<T[]>(count_);
      std::copy(values.begin(), values.end(), host_.get());
    } else {
      const OnGpu current(place_);
      memory_ = std::make_unique<nccl_backend::GpuMemory>(cuda(), values.size() * sizeof(T));
      copy(memory_->get(), values.data());
    }
  }
  GpuArray(int place, std::size_t count, T value = {}) : GpuArray(place, std::vector<T>(count, value)) {}

  operator TensorView() const { return whole(); }       // NOLINT(google-explicit-constructor)
  operator ConstTensorView() const { return whole(); }  // NOLINT(google-explicit-constructor)
  TensorView part(std::size_t offset, std::size_t count) const { return whole().slice(offset, count); }

  void set(const std::vector<T>& values) const {
    expect(values.size() == count_, "as many values as elements");
    if (count_ > 0) copy(address(), values.data());
  }
  std::vector<T> values() const {
    std::vector<T> values(count_);
    if (count_ > 0) copy(values.data(), address());
    return values;
  }

 private:
  void* address() const { return memory_ ? memory_->get() : static_cast<void*>(host_.get()); }
  TensorView whole() const {
    const Device device = place_ == kHost ? Device() : Device{Device::Type::cuda, gpu_of(place_)};
    return {address(), count_, dtype_of<T>(), device};
  }
  void copy(void* to, const void* from) const {
    if (place_ == kHost) {
      std::memcpy(to, from, count_ * sizeof(T));
      return;
    }
    const OnGpu current(place_);
    nccl_backend::GpuEvent ended(cuda());
    cuda().check(cuda().MemcpyAsync(reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from),
                                    count_ * sizeof(T), CU_STREAM_LEGACY),
                 "copy");
    ended.record(CU_STREAM_LEGACY);
    const Deadline deadline = Deadline::after(std::chrono::seconds(20));
    while (!ended.done()) expect(!deadline.expired(), "a copy does not end");
  }

  int place_;
  std::size_t count_;
  std::unique_ptr<T[]> host_;
  std::unique_ptr<nccl_backend::GpuMemory> memory_;
};

// Ranks that have a GPU each, in one group "g".
struct GpuRanks {
  int count = 2;
  Backend backend = Backend::nccl;
  std::function<int(int rank)> gpu = [](int rank) { return rank; };
};
using GpuBody = std::function<void(Group& group, int ordinal)>;

inline std::vector<Outcome> run_gpu_ranks(const GpuRanks& ranks, const GpuBody& body) {
  int most = 0;
  for (int rank = 0; rank < ranks.count; ++rank) most = std::max(most, ranks.gpu(rank));
  need_gpus(most + 1);
  return run_ranks(ranks.count, [&](int rank, Context& context) {
    const OnGpu current(ranks.gpu(rank));
    Group group = context.init_group({.name = "g", .rank = rank, .world_size = ranks.count, .backend = ranks.backend});
    body(group, ranks.gpu(rank));
  });
}
inline std::vector<Outcome> run_gpu_ranks(int count, const GpuBody& body) {
  return run_gpu_ranks({.count = count}, body);
}

// Two ranks, threads or processes, of which rank 1 stays away from a call of rank 0 until that has ended.
class Company {
 public:
  Company() = default;
  ~Company() { munmap(page_, sizeof(std::atomic<bool>)); }
  Company(const Company&) = delete;
  Company& operator=(const Company&) = delete;

  void stay() const {
    expect_soon("the other does not end", [this] { return ended_.load(); });
  }
  void end() { ended_ = true; }
  // The call ends with a timeout that names the other rank.
  template <class Call>
  void call_in_vain(Call call) {
    const std::string error = error_of(call).what();
    end();
    expect(has(error, "timeout") && has(error, "rank 1 did not enter it"), error);
  }

 private:
  void* const page_ =
      mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  std::atomic<bool>& ended_ = *new (page_) std::atomic<bool>(false);
};

// Runs a case; what it is skipped for goes to standard output, for whoever counts it.
inline void run_gpu_case(const std::string& name, void (*body)()) {
  try {
    body();
  } catch (const TooFewGpus& few) {
    std::printf("skipped from %d GPUs up: %s\n", few.needed, name.c_str());
    std::fflush(stdout);
  }
}

}  // namespace col::test

// A test case that needs so many GPUs. One that asks for more than this machine has stops there, and says so: what came
// before has been tested, the rest is skipped. Several files may be one translation unit: a line is not enough of a
// name.
#define COL_GPU_CASE(body, name, tags)      \
  static void body();                       \
  TEST_CASE(name, tags) {                   \
    ::col::test::run_gpu_case(name, &body); \
  }                                         \
  static void body()
#define COL_GPU_CASE_NUMBERED(number, name, tags) COL_GPU_CASE(gpu_case_##number, name, tags)
#define COL_GPU_CASE_EXPANDED(number, name, tags) COL_GPU_CASE_NUMBERED(number, name, tags)
#define GPU_TEST_CASE(name, tags) COL_GPU_CASE_EXPANDED(__COUNTER__, name, tags)

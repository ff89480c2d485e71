// Ranks that have a GPU each, as threads, and arrays in the memory of those GPUs.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <col/col.hpp>

#include "backend/nccl/device.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"

namespace col::test {

// The driver: a stand-in's, or that of this machine.
inline const nccl_backend::CudaDriver& cuda() {
  static const nccl_backend::CudaDriver kDriver;
  return kDriver;
}

// What this machine lacks for the rest of a case.
struct TooFewGpus {
  int needed;
};

// Called by the case itself, not by its ranks. Throws TooFewGpus.
inline void need_gpus(int count) {
  if (count > cuda().devices) throw TooFewGpus{count};
}

// Where an array is that is on no GPU.
inline constexpr int kHost = -1;

// An array on the GPU of that number, or in host memory.
template <class T>
class GpuArray {
 public:
  GpuArray(int place, const std::vector<T>& values) : place_(place), count_(values.size()) {
    if (count_ == 0) return;
    if (place_ == kHost) {
      host_ = std::make_unique<T[]>(count_);
      std::copy(values.begin(), values.end(), host_.get());
    } else {
      const nccl_backend::GpuDevice device(cuda(), place_);
      const nccl_backend::GpuDevice::Scope scope(device);
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
    const Device device = place_ == kHost ? Device() : Device{Device::Type::cuda, place_};
    return {address(), count_, dtype_of<T>(), device};
  }
  void copy(void* to, const void* from) const {
    if (place_ == kHost) {
      std::memcpy(to, from, count_ * sizeof(T));
      return;
    }
    const nccl_backend::GpuDevice device(cuda(), place_);
    const nccl_backend::GpuDevice::Scope scope(device);
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

inline void check_good(const std::vector<Outcome>& outcomes) {
  INFO(show(outcomes));
  CHECK(all_good(outcomes));
}

// The error of `call`; "" when there is none.
template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

using GpuBody = std::function<void(Group& group, int ordinal)>;

// Runs `body` in `ranks` threads, rank r with GPU r, in one group of backend nccl.
inline std::vector<Outcome> run_gpu_ranks(int ranks, const GpuBody& body, const RankOptions& options = {}) {
  need_gpus(ranks);
  return run_threads(
      ranks,
      [&](int rank, Context& context) {
        const nccl_backend::GpuDevice device(cuda(), rank);
        const nccl_backend::GpuDevice::Scope scope(device);
        Group group = context.init_group({.name = "g", .rank = rank, .world_size = ranks, .backend = Backend::nccl});
        body(group, rank);
      },
      options);
}

// Lets a rank stay, without a call, until another one has said that it ended.
class Company {
 public:
  void end() { ended_ = true; }
  void stay() const {
    const Deadline deadline = Deadline::after(std::chrono::seconds(20));
    while (!ended_) expect(!deadline.expired(), "the other does not end");
  }

 private:
  std::atomic<bool> ended_ = false;
};

}  // namespace col::test

// Ranks that have a GPU each, as threads, and arrays in the memory of those GPUs.
#pragma once

#include <cstddef>
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

// `ordinal` is current in this thread.
template <class T>
class GpuArray {
 public:
  GpuArray(int ordinal, const std::vector<T>& values) : ordinal_(ordinal), count_(values.size()) {
    if (count_ == 0) return;
    memory_ = std::make_unique<nccl_backend::GpuMemory>(cuda(), values.size() * sizeof(T));
    copy(memory_->get(), values.data());
  }
  GpuArray(int ordinal, std::size_t count, T value = {}) : GpuArray(ordinal, std::vector<T>(count, value)) {}

  operator TensorView() const { return whole(); }       // NOLINT(google-explicit-constructor)
  operator ConstTensorView() const { return whole(); }  // NOLINT(google-explicit-constructor)
  TensorView part(std::size_t offset, std::size_t count) const { return whole().slice(offset, count); }

  void set(const std::vector<T>& values) const {
    expect(values.size() == count_, "as many values as elements");
    if (count_ > 0) copy(memory_->get(), values.data());
  }
  std::vector<T> values() const {
    std::vector<T> values(count_);
    if (count_ > 0) copy(values.data(), memory_->get());
    return values;
  }

 private:
  TensorView whole() const {
    return {memory_ ? memory_->get() : nullptr, count_, dtype_of<T>(), Device{Device::Type::cuda, ordinal_}};
  }
  void copy(void* to, const void* from) const {
    nccl_backend::GpuEvent ended(cuda());
    cuda().check(cuda().MemcpyAsync(reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from),
                                    count_ * sizeof(T), CU_STREAM_LEGACY),
                 "copy");
    ended.record(CU_STREAM_LEGACY);
    const Deadline deadline = Deadline::after(std::chrono::seconds(20));
    while (!ended.done()) expect(!deadline.expired(), "a copy does not end");
  }

  int ordinal_;
  std::size_t count_;
  std::unique_ptr<nccl_backend::GpuMemory> memory_;
};

inline void check_good(const std::vector<Outcome>& outcomes) {
  INFO(show(outcomes));
  CHECK(all_good(outcomes));
}

using GpuBody = std::function<void(Group& group, int ordinal)>;

// Runs `body` in `ranks` threads, rank r with GPU r, in one group of backend nccl.
inline std::vector<Outcome> run_gpu_ranks(int ranks, const GpuBody& body, const RankOptions& options = {}) {
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

}  // namespace col::test

// Ranks that have several GPUs each, as threads or processes, and arrays in the memory of those GPUs.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include <col/col.hpp>

#include "conformance/gpu/gpu_ranks.hpp"

namespace col::test {

// Some GPUs, in an order, that this thread keeps started.
class Gpus {
 public:
  explicit Gpus(std::vector<int> ordinals) : ordinals_(std::move(ordinals)) {
    for (const int ordinal : ordinals_) devices_.push_back(std::make_unique<nccl_backend::GpuDevice>(cuda(), ordinal));
  }

  std::size_t size() const { return ordinals_.size(); }
  int ordinal(std::size_t i) const { return ordinals_[i]; }
  const nccl_backend::GpuDevice& device(std::size_t i) const { return *devices_[i]; }

 private:
  std::vector<int> ordinals_;
  std::vector<std::unique_ptr<nccl_backend::GpuDevice>> devices_;
};

// One array on each of them.
template <class T>
class MultiArray {
 public:
  using Values = std::vector<T>;

  MultiArray(const Gpus& gpus, const std::vector<Values>& values) : gpus_(gpus) {
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      const nccl_backend::GpuDevice::Scope scope(gpus.device(i));
      arrays_.push_back(std::make_unique<GpuArray<T>>(gpus.ordinal(i), values[i]));
    }
  }
  MultiArray(const Gpus& gpus, std::size_t count, T value = {})
      : MultiArray(gpus, std::vector<Values>(gpus.size(), Values(count, value))) {}
  ~MultiArray() {
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      const nccl_backend::GpuDevice::Scope scope(gpus_.device(i));
      arrays_[i].reset();
    }
  }
  MultiArray(const MultiArray&) = delete;
  MultiArray& operator=(const MultiArray&) = delete;

  TensorView view(std::size_t i) const { return *arrays_[i]; }
  std::vector<TensorView> views() const {
    std::vector<TensorView> all;
    for (const auto& array : arrays_) all.push_back(*array);
    return all;
  }
  std::vector<ConstTensorView> inputs() const {
    const auto all = views();
    return {all.begin(), all.end()};
  }
  // Elements [offset, offset + count) of each.
  std::vector<TensorView> parts(std::size_t offset, std::size_t count) const {
    std::vector<TensorView> all;
    for (const auto& array : arrays_) all.push_back(array->part(offset, count));
    return all;
  }
  Values values(std::size_t i) const {
    const nccl_backend::GpuDevice::Scope scope(gpus_.device(i));
    return arrays_[i]->values();
  }
  std::vector<Values> values() const {
    std::vector<Values> all;
    for (std::size_t i = 0; i < gpus_.size(); ++i) all.push_back(values(i));
    return all;
  }

 private:
  const Gpus& gpus_;
  std::vector<std::unique_ptr<GpuArray<T>>> arrays_;
};

using MultiBody = std::function<void(Group& group, const Gpus& gpus)>;

// A rank's body: GPUs rank * each to rank * each + each - 1, in one group "g" of backend nccl.
inline Body multi_body(int ranks, int each, const MultiBody& body) {
  return [=](int rank, Context& context) {
    std::vector<int> ordinals(static_cast<std::size_t>(each));
    std::iota(ordinals.begin(), ordinals.end(), rank * each);
    const Gpus gpus(std::move(ordinals));
    const nccl_backend::GpuDevice::Scope scope(gpus.device(0));
    Group group = context.init_group({.name = "g", .rank = rank, .world_size = ranks, .backend = Backend::nccl});
    body(group, gpus);
  };
}

inline std::vector<Outcome> run_multi(int ranks, int each, const MultiBody& body) {
  need_own_gpus(ranks * each);
  return run_threads(ranks, multi_body(ranks, each, body));
}

}  // namespace col::test

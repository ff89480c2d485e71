// Strategy "allreduce": one allreduce a step. All ranks then hold the same sums and the same parameters, so they take
// the same step and stay equal.
#include <optional>
#include <utility>

#include "strategies/data_parallel.hpp"

namespace digits {
namespace {

class Allreduce final : public Exchange {
 public:
  Allreduce(col::Group world, std::size_t count, const Gpu* gpu) : world_(std::move(world)), count_(count) {
    if (gpu != nullptr) on_gpu_.emplace(*gpu, count);
  }

  Shard own() const override { return {0, count_}; }

  void sum(std::span<float> values) override {
    if (!on_gpu_) return world_.allreduce(values);
    // A model that computes on the GPU has its gradients there, and needs neither copy.
    on_gpu_->set(values);
    world_.allreduce(on_gpu_->view());
    on_gpu_->get(values);
  }

  void share(std::span<float>) override {}  // every rank owns everything

  std::string text(std::size_t, std::size_t) const override { return {}; }

 private:
  col::Group world_;
  std::size_t count_;
  std::optional<GpuFloats> on_gpu_;
};

}  // namespace

std::unique_ptr<Exchange> make_allreduce(col::Group world, std::size_t count, const Gpu* gpu) {
  return std::make_unique<Allreduce>(std::move(world), count, gpu);
}

}  // namespace digits

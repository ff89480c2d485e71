// Data-parallel training in step: every rank holds all parameters, and works on its shard of each batch. All add up all
// gradients by one allreduce a step; they then hold the same sums, so they take the same step and stay equal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <col/col.hpp>

#include "dataset.hpp"
#include "gpu.hpp"
#include "model.hpp"
#include "stopwatch.hpp"

namespace digits {

// All that a rank works with.
struct Workplace {
  col::Group world;
  const Dataset& dataset;
  std::uint64_t batch;  // images, over all ranks
  double learning_rate;
  Model model;
  Stopwatch communication;  // waiting for slower ranks included
};

class DataParallel {
 public:
  // Takes the velocity of all parameters, the same on all ranks. Requires: `place` outlives it, and so does `gpu`, in
  // whose memory gradients are reduced; null: in that of the host. Throws col::Error.
  DataParallel(Workplace& place, std::vector<float> velocity, const Gpu* gpu);
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  // Collective. Trains on the images of `order` once, a batch a step. Returns the sum of their losses, each at the
  // weights that it was trained with: the same on all ranks. Requires: the model is the same on all ranks; it is so
  // again afterwards. Throws col::Error.
  double train(std::span<const std::uint32_t> order);
  const std::vector<float>& velocity() const noexcept { return velocity_; }

 private:
  double step(std::span<const std::uint32_t> batch);
  void sum_over_images(std::span<const std::uint32_t> images);
  void sum_over_ranks();

  Workplace& place_;
  std::vector<float> velocity_;
  std::vector<double> gradient_;
  std::vector<float> fused_;  // gradient and, last, loss: one buffer, so that one call moves both
  std::optional<GpuFloats> on_gpu_;
};

}  // namespace digits

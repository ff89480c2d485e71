// Data-parallel training: every rank holds the whole model, works on its shard of each batch, and takes the same step.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <col/col.hpp>

#include "checkpoint.hpp"
#include "dataset.hpp"
#include "gpu.hpp"
#include "model.hpp"

namespace digits {

struct EpochReport {
  double loss = 0;           // mean over the epoch's training images, at the weights each was trained with
  double test_accuracy = 0;  // after the epoch
  double seconds = 0;
  double communication_seconds = 0;  // this rank's, waiting for slower ranks included
};

class Trainer {
 public:
  // Collective: every rank takes the state of rank 0, whatever it brought itself. With a `gpu`, gradients are reduced
  // in its memory. Requires: `dataset`, and `gpu` if it is not null, outlive the trainer; `dataset` is the same on all
  // ranks.
  Trainer(col::Group world, const Dataset& dataset, TrainingState state, const Gpu* gpu = nullptr);

  // Collective. Trains on every training image once, then tests. Throws col::Error.
  EpochReport run_epoch();
  // Collective. Share of the test images that are recognised.
  double test_accuracy();

  // What a checkpoint of this moment holds.
  TrainingState state() const;

 private:
  void share_state();
  void sum_over_ranks();
  // One step on the images that `batch` names; returns their summed loss.
  double step(std::span<const std::uint32_t> batch);
  template <class Call>
  void timed(Call&& call);

  col::Group world_;
  const Dataset& dataset_;
  TrainingState state_;  // its parameters live in model_ after the constructor
  Model model_;
  std::vector<double> gradient_;     // this rank's sum
  std::vector<float> fused_;         // gradient and, last, loss: one buffer, so one allreduce a step
  std::optional<GpuFloats> on_gpu_;  // the same on the GPU, if there is one
  double communication_seconds_ = 0;
};

}  // namespace digits

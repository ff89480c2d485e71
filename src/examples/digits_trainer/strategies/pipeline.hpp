// Training where each layer of the network is with another rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <col/col.hpp>

#include "dataset.hpp"
#include "strategies/strategy.hpp"

namespace digits {

class Pipeline final : public Strategy {
 public:
  // Requires: an even number of ranks.
  Pipeline(Workplace& place, std::span<const float> velocity);

  double train(std::span<const std::uint32_t> order) override;
  std::vector<float> velocity() override;
  std::string introduction() const override;

 private:
  using MicroBatches = std::vector<std::span<const std::uint32_t>>;
  // One step of this rank's stage on the batch; returns the images' summed loss, 0 in stage 0.
  double step(std::span<const std::uint32_t> batch);
  // These add to gradient_; output_stage() returns the loss.
  void hidden_stage(const MicroBatches& micro);
  double output_stage(const MicroBatches& micro);
  // Collective over the world: every rank gets each stage's part from the stage's first rank.
  void join_stages(std::span<float> values);

  Workplace& place_;
  const int pipelines_;
  const int stage_;
  const int peer_;       // this pipeline's rank of the other stage
  col::Group replicas_;  // the ranks of this stage: one of each pipeline
  Shard own_;            // the parameters of this stage
  std::vector<float> velocity_;
  std::vector<double> gradient_;  // of all parameters: those of the other stage stay 0
  std::vector<float> fused_;      // the stage's gradient and, last, loss
};

}  // namespace digits

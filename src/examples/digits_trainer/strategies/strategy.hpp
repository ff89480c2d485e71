// How the ranks train one model together: who works on which images, who holds what, and what they exchange. Each
// strategy is one file of this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <col/col.hpp>

#include "dataset.hpp"
#include "gpu.hpp"
#include "model.hpp"
#include "stopwatch.hpp"

namespace digits {

// allreduce  every rank adds up all gradients and takes every step
// ps         each rank is also the parameter server of a part; gradients and parameters go as messages
// ps-async   rank 0 is the parameter server of all others, who need not wait for one another
// zero       each rank takes the step for its part of the parameters, whose velocity it alone keeps
// pipeline   each layer is with another half of the ranks; activations and their gradients go as messages
enum class StrategyName : std::uint8_t { allreduce, ps, ps_async, zero, pipeline };

struct StrategyChoice {
  StrategyName name = StrategyName::allreduce;
  std::uint64_t staleness = 1;  // ps-async only: the most steps that a worker may go on ahead of the slowest
  const Gpu* gpu = nullptr;     // allreduce only: gradients are reduced in its memory; outlives the strategy
};

// "allreduce, zero or …": for messages.
std::string strategy_names();
std::optional<StrategyName> strategy_from_string(std::string_view name);

// Why the strategy cannot be that of so many ranks; empty when it can.
std::string why_not(StrategyName name, int ranks);

// What a strategy works with.
struct Workplace {
  col::Group world;
  const Dataset& dataset;
  std::uint64_t batch;  // images, over all ranks
  double learning_rate;
  Model model;
  Stopwatch communication;  // waiting for slower ranks included
};

class Strategy {
 public:
  Strategy() = default;
  virtual ~Strategy() = default;
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;

  // Collective. Trains on the images of `order` once, a batch a step. Returns the sum of their losses, each at the
  // weights that it was trained with: the same on all ranks. Requires: the model is the same on all ranks; it is so
  // again afterwards. Throws col::Error.
  virtual double train(std::span<const std::uint32_t> order) = 0;
  // Collective. The velocity of all parameters, on every rank. Throws col::Error.
  virtual std::vector<float> velocity() = 0;
  // What rank 0 says about it before the training, and after it. Empty: nothing.
  virtual std::string introduction() const { return {}; }
  virtual std::string summary() const { return {}; }
};

// Collective. Takes the velocity of all parameters, the same on all ranks, and keeps what is this rank's. Requires:
// why_not() is empty; `place` outlives the strategy. Throws col::Error.
std::unique_ptr<Strategy> make_strategy(const StrategyChoice& choice, Workplace& place, std::vector<float> velocity);

// ---- What strategies share ------------------------------------------------------------------------------------------

inline constexpr float kMomentum = 0.9f;

// What the sum of the gradients of so many images is multiplied by in a step.
float step_scale(const Workplace& place, std::size_t images);

// Writes the sum over these images of the gradients and, last, of the losses. Uses `scratch`, so that it need not be
// allocated for each step. Requires: one element more in `sums` than in `scratch`, which has one for each parameter.
void sum_over_images(const Workplace& place, std::span<const std::uint32_t> images, std::span<double> scratch,
                     std::span<float> sums);

}  // namespace digits

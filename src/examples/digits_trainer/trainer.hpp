// Training of one model by all ranks: what they share before the first step, the epochs, and the test after each.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <col/col.hpp>

#include "checkpoint.hpp"
#include "data_parallel.hpp"
#include "dataset.hpp"
#include "gpu.hpp"
#include "recovery.hpp"

namespace digits {

struct EpochReport {
  double loss = 0;           // mean over the epoch's training images, at the weights each was trained with
  double test_accuracy = 0;  // after the epoch
  double seconds = 0;
  double communication_seconds = 0;  // this rank's, waiting for slower ranks included
};

class Trainer {
 public:
  // Collective: every rank takes the state of rank 0, whatever it brought itself. Requires: `dataset` outlives the
  // trainer, and is the same on all ranks; `gpu`, where gradients are reduced, outlives it too; null: the host. Who
  // survives goes on without ranks that are lost, which the lowest of those that are left then prints. In a later epoch
  // of `world`, this rank joins those that survive, and gets their state.
  Trainer(col::Group world, const Dataset& dataset, TrainingState state, const Gpu* gpu = nullptr,
          bool survives = false);
  Trainer(const Trainer&) = delete;  // steps_ refers to place_
  Trainer& operator=(const Trainer&) = delete;

  // Collective. Trains on every training image once, then tests. Throws col::Error.
  EpochReport run_epoch();
  // Collective, after the last epoch. Who survives waits for the others here: they may have lost a rank in that epoch's
  // test, and need this one to go on.
  void finish();
  // Collective. Share of the test images that are recognised.
  double test_accuracy();
  // The same of the last epoch; none before the first.
  std::optional<double> last_accuracy() const;
  // The content of a checkpoint of this moment: the same on all ranks.
  TrainingState state() const;

  // The same without parameters and velocity, which are empty. Not collective.
  const TrainingState& settings() const noexcept { return settings_; }
  // How many epochs it had when the training began, of those in settings().
  std::uint64_t first_epoch() const noexcept { return first_epoch_; }
  // The ranks that are left.
  col::Group& world() noexcept { return place_.world; }

 private:
  EpochReport train_and_survive(std::span<const std::uint32_t> order);
  void keep_state(std::uint64_t step, double loss);
  StepState go_on_without(const col::Error& error);
  TrainingState join(col::Group& world);

  std::optional<Recovery> recovery_;
  std::uint64_t first_epoch_ = 0, first_step_ = 0;  // the step: of the next epoch, which others have begun
  double first_loss_ = 0;                           // until that step
  double accuracy_ = -1;                            // negative: no epoch has ended
  TrainingState settings_;
  Workplace place_;
  const Gpu* gpu_;
  std::optional<DataParallel> steps_;
};

}  // namespace digits

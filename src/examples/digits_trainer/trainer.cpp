#include "trainer.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace digits {
namespace {

// Rank 0's.
TrainingState shared(col::Group& world, TrainingState state) {
  state.parameters.resize(state.shape.parameters());
  state.velocity.resize(state.shape.parameters());
  std::array<std::uint64_t, 3> counters{state.epochs, state.seed, state.batch};
  world.broadcast(counters);
  world.broadcast(std::span(&state.learning_rate, 1));
  world.broadcast(state.parameters);
  world.broadcast(state.velocity);
  state.epochs = counters[0];
  state.seed = counters[1];
  state.batch = counters[2];
  return state;
}

}  // namespace

Trainer::Trainer(col::Group world, const Dataset& dataset, TrainingState state, const Gpu* gpu, bool survives)
    : recovery_(survives ? std::optional<Recovery>(state.shape.parameters()) : std::nullopt),
      settings_(world.epoch() == 0 ? shared(world, std::move(state)) : join(world)),
      place_{std::move(world), dataset, settings_.batch, settings_.learning_rate, Model(settings_.shape), {}},
      gpu_(gpu) {
  const std::vector<float> parameters = std::exchange(settings_.parameters, {});
  std::copy(parameters.begin(), parameters.end(), place_.model.parameters().begin());
  steps_.emplace(place_, std::exchange(settings_.velocity, {}), gpu_);
  if (place_.world.epoch() == 0) first_epoch_ = settings_.epochs;
  if (recovery_) recovery_->settings = {settings_.seed, settings_.batch, first_epoch_, settings_.learning_rate};
}

// Takes the state of those that survive.
TrainingState Trainer::join(col::Group& world) {
  if (!recovery_)
    throw std::runtime_error("this process joins a training that is under way, as only --survive can; add that option");
  const StepState at = recovery_->recover(world);
  const RunSettings& run = recovery_->settings;
  TrainingState state;
  state.seed = run.seed;
  state.batch = run.batch;
  state.learning_rate = run.learning_rate;
  state.epochs = at.epoch;
  state.parameters = at.parameters;
  state.velocity = at.velocity;
  first_epoch_ = run.first_epoch;
  first_step_ = at.step;
  first_loss_ = at.loss;
  accuracy_ = at.accuracy;
  if (world.rank() == 0) {
    std::printf("%d ranks go on from step %llu of epoch %llu, with another rank 0\n", world.size(),
                static_cast<unsigned long long>(at.step + 1), static_cast<unsigned long long>(at.epoch + 1));
  }
  return state;
}

std::optional<double> Trainer::last_accuracy() const {
  return accuracy_ >= 0 ? std::optional(accuracy_) : std::nullopt;
}

EpochReport Trainer::run_epoch() {
  EpochReport report;
  place_.communication.reset();
  Stopwatch whole;
  whole([&] {
    const std::vector<std::uint32_t> order = epoch_order(settings_.seed, settings_.epochs, place_.dataset.train.size());
    if (recovery_) {
      report = train_and_survive(order);
      return;
    }
    report.loss = steps_->train(order) / static_cast<double>(order.size());
    report.test_accuracy = test_accuracy();
  });
  ++settings_.epochs;
  accuracy_ = report.test_accuracy;
  report.seconds = whole.seconds();
  report.communication_seconds = place_.communication.seconds();
  return report;
}

void Trainer::keep_state(std::uint64_t step, double loss) {
  const auto parameters = std::as_const(place_.model).parameters();
  recovery_->keep({.epoch = settings_.epochs,
                   .step = step,
                   .loss = loss,
                   .accuracy = accuracy_,
                   .parameters = {parameters.begin(), parameters.end()},
                   .velocity = steps_->velocity()});
}

// A step is a batch; the last one is the test.
EpochReport Trainer::train_and_survive(std::span<const std::uint32_t> order) {
  const std::vector<std::span<const std::uint32_t>> steps = batches(order, place_.batch);
  EpochReport report;
  double loss = std::exchange(first_loss_, 0);
  bool others_test = false;  // the epoch before
  for (std::uint64_t step = std::exchange(first_step_, 0); step <= steps.size();) {
    try {
      if (std::exchange(others_test, false)) (void)test_accuracy();
      keep_state(step, loss);
      if (step < steps.size())
        loss += steps_->train(steps[step]);
      else
        report.test_accuracy = test_accuracy();
      ++step;
    } catch (const col::Error& error) {
      const StepState state = go_on_without(error);
      // This rank has no more to do for that test than its part.
      others_test = state.epoch < settings_.epochs;
      step = others_test ? 0 : state.step;
      loss = others_test ? 0 : state.loss;
    }
  }
  report.loss = loss / static_cast<double>(order.size());
  return report;
}

void Trainer::finish() {
  bool others_test = false;  // the last epoch
  for (bool all_are_here = !recovery_; !all_are_here;) {
    try {
      if (std::exchange(others_test, false)) (void)test_accuracy();
      keep_state(0, 0);
      place_.world.barrier();
      all_are_here = true;
    } catch (const col::Error& error) {
      others_test = go_on_without(error).epoch < settings_.epochs;
    }
  }
}

StepState Trainer::go_on_without(const col::Error& error) {
  const int ranks = place_.world.size();
  StepState state = recovery_->recover(place_.world, error);
  std::copy(state.parameters.begin(), state.parameters.end(), place_.model.parameters().begin());
  steps_.emplace(place_, state.velocity, gpu_);
  if (place_.world.rank() == 0) {
    std::printf("%s\n%d of %d ranks go on from step %llu of epoch %llu\n", error.what(), place_.world.size(), ranks,
                static_cast<unsigned long long>(state.step + 1), static_cast<unsigned long long>(state.epoch + 1));
  }
  return state;
}

double Trainer::test_accuracy() {
  const std::vector<Image>& images = place_.dataset.test;
  const Shard mine = shard(images.size(), place_.world.rank(), place_.world.size());
  std::array<std::int64_t, 1> correct{0};
  for (std::size_t i = mine.begin; i < mine.end; ++i) {
    if (place_.model.predict(images[i]) == images[i].label) ++correct[0];
  }
  place_.communication([&] { place_.world.allreduce(correct); });
  return static_cast<double>(correct[0]) / static_cast<double>(images.size());
}

TrainingState Trainer::state() const {
  TrainingState state = settings_;
  const auto parameters = std::as_const(place_.model).parameters();
  state.parameters.assign(parameters.begin(), parameters.end());
  state.velocity = steps_->velocity();
  return state;
}

}  // namespace digits

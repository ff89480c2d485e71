#include "trainer.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
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

Trainer::Trainer(col::Group world, const Dataset& dataset, TrainingState state, const StrategyChoice& choice)
    : settings_(shared(world, std::move(state))), place_{std::move(world),       dataset,
                                                         settings_.batch,        settings_.learning_rate,
                                                         Model(settings_.shape), {}} {
  const std::vector<float> parameters = std::exchange(settings_.parameters, {});
  std::copy(parameters.begin(), parameters.end(), place_.model.parameters().begin());
  strategy_ = make_strategy(choice, place_, std::exchange(settings_.velocity, {}));
}

EpochReport Trainer::run_epoch() {
  EpochReport report;
  place_.communication.reset();
  Stopwatch whole;
  whole([&] {
    const std::vector<std::uint32_t> order = epoch_order(settings_.seed, settings_.epochs, place_.dataset.train.size());
    report.loss = strategy_->train(order) / static_cast<double>(order.size());
    report.test_accuracy = test_accuracy();
  });
  ++settings_.epochs;
  report.seconds = whole.seconds();
  report.communication_seconds = place_.communication.seconds();
  return report;
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

TrainingState Trainer::state() {
  TrainingState state = settings_;
  const auto parameters = std::as_const(place_.model).parameters();
  state.parameters.assign(parameters.begin(), parameters.end());
  state.velocity = strategy_->velocity();
  return state;
}

}  // namespace digits

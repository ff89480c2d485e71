#include "trainer.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <utility>

#include "dataset.hpp"

namespace digits {
namespace {

constexpr float kMomentum = 0.9f;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

Trainer::Trainer(col::Group world, const Dataset& dataset, TrainingState state, const Gpu* gpu)
    : world_(std::move(world)),
      dataset_(dataset),
      state_(std::move(state)),
      model_(state_.shape),
      gradient_(state_.shape.parameters()),
      fused_(state_.shape.parameters() + 1) {
  if (gpu != nullptr) on_gpu_.emplace(*gpu, fused_.size());
  share_state();
}

void Trainer::share_state() {
  state_.parameters.resize(state_.shape.parameters());
  state_.velocity.resize(state_.shape.parameters());
  std::array<std::uint64_t, 3> counters{state_.epochs, state_.seed, state_.batch};
  world_.broadcast(counters);
  world_.broadcast(std::span(&state_.learning_rate, 1));
  world_.broadcast(state_.parameters);
  world_.broadcast(state_.velocity);
  state_.epochs = counters[0];
  state_.seed = counters[1];
  state_.batch = counters[2];
  std::copy(state_.parameters.begin(), state_.parameters.end(), model_.parameters().begin());
}

EpochReport Trainer::run_epoch() {
  const auto start = Clock::now();
  communication_seconds_ = 0;
  const std::vector<std::uint32_t> order = epoch_order(state_.seed, state_.epochs, dataset_.train.size());
  double loss = 0;
  for (std::size_t begin = 0; begin < order.size();) {
    const std::size_t count = std::min<std::size_t>(state_.batch, order.size() - begin);
    loss += step(std::span(order).subspan(begin, count));
    begin += count;
  }
  ++state_.epochs;

  EpochReport report;
  report.loss = loss / static_cast<double>(order.size());
  report.test_accuracy = test_accuracy();
  report.seconds = seconds_since(start);
  report.communication_seconds = communication_seconds_;
  return report;
}

double Trainer::step(std::span<const std::uint32_t> batch) {
  const Shard mine = shard(batch.size(), world_.rank(), world_.size());
  std::fill(gradient_.begin(), gradient_.end(), 0.0);
  const double loss = model_.add_gradient(dataset_.train, batch.subspan(mine.begin, mine.end - mine.begin), gradient_);

  std::transform(gradient_.begin(), gradient_.end(), fused_.begin(),
                 [](double sum) { return static_cast<float>(sum); });
  fused_.back() = static_cast<float>(loss);
  timed([&] { sum_over_ranks(); });

  // All ranks hold the same sums and the same weights, so they take the same step and stay equal.
  const float scale = static_cast<float>(state_.learning_rate / static_cast<double>(batch.size()));
  const std::span<float> parameters = model_.parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    state_.velocity[i] = kMomentum * state_.velocity[i] - scale * fused_[i];
    parameters[i] += state_.velocity[i];
  }
  return static_cast<double>(fused_.back());
}

void Trainer::sum_over_ranks() {
  if (!on_gpu_) return world_.allreduce(fused_);
  // A model that computes on the GPU has its gradients there, and needs neither copy.
  on_gpu_->set(fused_);
  world_.allreduce(on_gpu_->view());
  on_gpu_->get(fused_);
}

double Trainer::test_accuracy() {
  const Shard mine = shard(dataset_.test.size(), world_.rank(), world_.size());
  std::array<std::int64_t, 1> correct{0};
  for (std::size_t i = mine.begin; i < mine.end; ++i) {
    const Image& image = dataset_.test[i];
    if (model_.predict(image) == image.label) ++correct[0];
  }
  timed([&] { world_.allreduce(correct); });
  return static_cast<double>(correct[0]) / static_cast<double>(dataset_.test.size());
}

TrainingState Trainer::state() const {
  TrainingState state = state_;
  const auto parameters = model_.parameters();
  state.parameters.assign(parameters.begin(), parameters.end());
  return state;
}

template <class Call>
void Trainer::timed(Call&& call) {
  const auto start = Clock::now();
  call();
  communication_seconds_ += seconds_since(start);
}

}  // namespace digits

#include "data_parallel.hpp"

#include <algorithm>
#include <utility>

namespace digits {
namespace {

constexpr float kMomentum = 0.9f;

}  // namespace

DataParallel::DataParallel(Workplace& place, std::vector<float> velocity, const Gpu* gpu)
    : place_(place), velocity_(std::move(velocity)), gradient_(velocity_.size()), fused_(velocity_.size() + 1) {
  if (gpu != nullptr) on_gpu_.emplace(*gpu, fused_.size());
}

double DataParallel::train(std::span<const std::uint32_t> order) {
  double loss = 0;
  for (const auto batch : batches(order, place_.batch)) loss += step(batch);
  return loss;
}

// Returns the summed loss of the images.
double DataParallel::step(std::span<const std::uint32_t> batch) {
  const Shard mine = shard(batch.size(), place_.world.rank(), place_.world.size());
  sum_over_images(batch.subspan(mine.begin, mine.end - mine.begin));
  place_.communication([&] { sum_over_ranks(); });

  const auto scale = static_cast<float>(place_.learning_rate / static_cast<double>(batch.size()));
  const std::span<float> parameters = place_.model.parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    velocity_[i] = kMomentum * velocity_[i] - scale * fused_[i];
    parameters[i] += velocity_[i];
  }
  return static_cast<double>(fused_.back());
}

void DataParallel::sum_over_images(std::span<const std::uint32_t> images) {
  std::fill(gradient_.begin(), gradient_.end(), 0.0);
  const double loss = place_.model.add_gradient(place_.dataset.train, images, gradient_);
  std::transform(gradient_.begin(), gradient_.end(), fused_.begin(),
                 [](double sum) { return static_cast<float>(sum); });
  fused_.back() = static_cast<float>(loss);
}

void DataParallel::sum_over_ranks() {
  if (!on_gpu_) return place_.world.allreduce(fused_);
  // A model that computes on the GPU has its gradients there, and needs neither copy.
  on_gpu_->set(fused_);
  place_.world.allreduce(on_gpu_->view());
  on_gpu_->get(fused_);
}

}  // namespace digits

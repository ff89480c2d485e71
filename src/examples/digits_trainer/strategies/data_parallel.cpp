#include "strategies/data_parallel.hpp"

#include <algorithm>
#include <utility>

namespace digits {
namespace {

// The elements of `shard` in front of `end`.
Shard before(Shard shard, std::size_t end) {
  return {std::min(shard.begin, end), std::min(shard.end, end)};
}

}  // namespace

DataParallel::DataParallel(Workplace& place, std::unique_ptr<Exchange> exchange, std::span<const float> velocity)
    : place_(place),
      exchange_(std::move(exchange)),
      own_(before(exchange_->own(), velocity.size())),
      gradient_(velocity.size()),
      fused_(velocity.size() + 1) {
  const auto mine = velocity.subspan(own_.begin, own_.end - own_.begin);
  velocity_.assign(mine.begin(), mine.end());
}

double DataParallel::train(std::span<const std::uint32_t> order) {
  double loss = 0;
  for (const auto batch : batches(order, place_.batch)) loss += step(batch);
  return loss;
}

double DataParallel::step(std::span<const std::uint32_t> batch) {
  const Shard mine = shard(batch.size(), place_.world.rank(), place_.world.size());
  sum_over_images(place_, batch.subspan(mine.begin, mine.end - mine.begin), gradient_, fused_);
  place_.communication([&] { exchange_->sum(fused_); });

  // The owner of a sum takes its step: the new parameter takes the place of the sum.
  const float scale = step_scale(place_, batch.size());
  const std::span<float> parameters = place_.model.parameters();
  for (std::size_t i = own_.begin; i < own_.end; ++i) {
    float& velocity = velocity_[i - own_.begin];
    velocity = kMomentum * velocity - scale * fused_[i];
    fused_[i] = parameters[i] + velocity;
  }
  place_.communication([&] { exchange_->share(fused_); });
  std::copy_n(fused_.begin(), parameters.size(), parameters.begin());
  return static_cast<double>(fused_.back());
}

std::vector<float> DataParallel::velocity() {
  std::vector<float> whole(fused_.size());
  std::copy(velocity_.begin(), velocity_.end(), whole.begin() + static_cast<std::ptrdiff_t>(own_.begin));
  exchange_->share(whole);
  whole.pop_back();
  return whole;
}

std::string DataParallel::introduction() const {
  return exchange_->text(velocity_.size(), gradient_.size());
}

}  // namespace digits

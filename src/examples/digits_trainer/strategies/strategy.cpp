#include "strategies/strategy.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "strategies/data_parallel.hpp"
#include "strategies/pipeline.hpp"
#include "strategies/ps_async.hpp"

namespace digits {
namespace {

constexpr std::array<std::pair<std::string_view, StrategyName>, 5> kNames{{{"allreduce", StrategyName::allreduce},
                                                                           {"ps", StrategyName::ps},
                                                                           {"ps-async", StrategyName::ps_async},
                                                                           {"zero", StrategyName::zero},
                                                                           {"pipeline", StrategyName::pipeline}}};

}  // namespace

std::string strategy_names() {
  std::string text;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (i > 0) text += i + 1 < kNames.size() ? ", " : " or ";
    text += kNames[i].first;
  }
  return text;
}

std::optional<StrategyName> strategy_from_string(std::string_view name) {
  const auto* found =
      std::find_if(kNames.begin(), kNames.end(), [&](const auto& entry) { return entry.first == name; });
  if (found == kNames.end()) return std::nullopt;
  return found->second;
}

std::string why_not(StrategyName name, int ranks) {
  if (name != StrategyName::pipeline || ranks == 1 || ranks % 2 == 0) return {};
  return "--strategy pipeline: needs one rank or an even number, not " + std::to_string(ranks) +
         ": half of them have one layer, half the other";
}

std::unique_ptr<Strategy> make_strategy(const StrategyChoice& choice, Workplace& place, std::vector<float> velocity) {
  const std::size_t count = velocity.size() + 1;
  switch (choice.name) {
    case StrategyName::ps:
      return std::make_unique<DataParallel>(place, make_ps(place.world, count), velocity);
    case StrategyName::ps_async:
      if (place.world.size() == 1) break;  // nobody to serve
      return std::make_unique<AsyncServer>(place, choice.staleness, std::move(velocity));
    case StrategyName::pipeline:
      if (place.world.size() == 1) break;  // one rank has both layers
      return std::make_unique<Pipeline>(place, velocity);
    case StrategyName::zero:
      return std::make_unique<DataParallel>(place, make_zero(place.world, count), velocity);
    case StrategyName::allreduce:
      break;
  }
  return std::make_unique<DataParallel>(place, make_allreduce(place.world, count, choice.gpu), velocity);
}

float step_scale(const Workplace& place, std::size_t images) {
  return static_cast<float>(place.learning_rate / static_cast<double>(images));
}

void sum_over_images(const Workplace& place, std::span<const std::uint32_t> images, std::span<double> scratch,
                     std::span<float> sums) {
  std::fill(scratch.begin(), scratch.end(), 0.0);
  const double loss = place.model.add_gradient(place.dataset.train, images, scratch);
  std::transform(scratch.begin(), scratch.end(), sums.begin(), [](double sum) { return static_cast<float>(sum); });
  sums.back() = static_cast<float>(loss);
}

}  // namespace digits

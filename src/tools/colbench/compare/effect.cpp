#include "colbench/compare/effect.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "colbench/stats/two_samples.hpp"

namespace col::colbench {
namespace {

struct Sides {
  std::vector<double> a, b;
};

// Each value over the median of both sides' values around it. That level is the same for both values of a pair and does
// not depend on which of them is A's: exchanging them stays possible.
Sides without_shared_noise(std::span<const double> a, std::span<const double> b) {
  constexpr std::size_t kPairs = 3;
  Sides rest;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::size_t width = std::min(kPairs, a.size());
    const std::size_t first = std::min(i > 0 ? i - 1 : 0, a.size() - width);
    std::vector<double> around(a.begin() + static_cast<std::ptrdiff_t>(first),
                               a.begin() + static_cast<std::ptrdiff_t>(first + width));
    around.insert(around.end(), b.begin() + static_cast<std::ptrdiff_t>(first),
                  b.begin() + static_cast<std::ptrdiff_t>(first + width));
    const double level = median_in_place(around);
    rest.a.push_back(a[i] / level);
    rest.b.push_back(b[i] / level);
  }
  return rest;
}

}  // namespace

std::string_view to_string(Change verdict) {
  return verdict == Change::faster ? "faster" : verdict == Change::slower ? "slower" : "undecided";
}

Effect effect_of(std::span<const double> a, std::span<const double> b, const Rule& rule) {
  Sides sides{{a.begin(), a.end()}, {b.begin(), b.end()}};
  Effect effect;
  effect.median_a = median(sides.a);
  effect.median_b = median(sides.b);
  if (rule.interleaved) {
    sides = without_shared_noise(a, b);
    effect.p = exchange_p(sides.a, sides.b);
    effect.smallest_p = smallest_exchange_p(a.size());
  } else {
    effect.dependence = dependence_factor(std::array{sides.a, sides.b});
    effect.p = rank_sum_p(a, b, effect.dependence);
    effect.smallest_p = smallest_rank_sum_p(a.size(), b.size());
  }
  effect.ratio = median(sides.b) / median(sides.a);
  effect.interval = rule.interleaved
                        ? ratio_interval(sides.a, sides.b, {.resamples = rule.resamples, .seed = rule.seed})
                        : rank_sum_ratios(a, b, kLaunchesPerObservation);
  return effect;
}

Change verdict_of(const Effect& effect, double p, const Rule& rule) {
  if (p > rule.alpha) return Change::undecided;
  if (effect.ratio >= 1 + rule.min_effect && effect.interval.low > 1) return Change::slower;
  if (effect.ratio <= 1 / (1 + rule.min_effect) && effect.interval.high < 1) return Change::faster;
  return Change::undecided;
}

std::size_t fewest_launches(std::size_t tests, const Rule& rule) {
  std::size_t launches = 1;
  const auto is_enough = [&] {
    const double smallest = rule.interleaved ? smallest_exchange_p(launches) : smallest_rank_sum_p(launches, launches);
    if (smallest * static_cast<double>(std::max<std::size_t>(tests, 1)) > rule.alpha) return false;
    const std::vector<double> any(launches, 1.0);
    return rule.interleaved || std::isfinite(rank_sum_ratios(any, any, kLaunchesPerObservation).high);
  };
  while (!is_enough()) ++launches;
  return launches;
}

}  // namespace col::colbench

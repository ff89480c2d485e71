#include "colbench/compare/detectable.hpp"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace col::colbench {
namespace {

constexpr std::size_t kStretch = 4;
constexpr int kSimulations = 200;
constexpr int kNeeded = 180;  // 90 %
constexpr int kResamples = 200;
constexpr double kStep = 0.005;
constexpr int kMostSteps = 200;

using Random = std::mt19937_64;
struct DrawnSides {
  std::vector<double> a, b;
};

// `count` places in `size` of them, in stretches; behind the last place comes the first.
std::vector<std::size_t> draw_places(std::size_t size, std::size_t count, Random& random) {
  std::vector<std::size_t> places;
  while (places.size() < count) {
    const std::size_t first = random() % size;
    for (std::size_t i = 0; i < kStretch && places.size() < count; ++i) places.push_back((first + i) % size);
  }
  return places;
}

DrawnSides draw_pairs(std::span<const double> a, std::span<const double> b, std::size_t launches, Random& random) {
  DrawnSides sides;
  for (const std::size_t place : draw_places(a.size(), launches, random)) {
    const bool exchange = random() % 2 == 1;
    sides.a.push_back(exchange ? b[place] : a[place]);
    sides.b.push_back(exchange ? a[place] : b[place]);
  }
  return sides;
}

std::vector<double> draw_side(std::span<const double> a, std::span<const double> b, std::size_t launches,
                              Random& random) {
  std::vector<double> side;
  for (const std::size_t place : draw_places(2 * a.size(), launches, random)) {
    side.push_back(place % 2 == 0 ? a[place / 2] : b[place / 2]);
  }
  return side;
}

bool is_detected(DrawnSides sides, double slowdown, const Rule& rule) {
  for (double& seconds : sides.b) seconds *= 1 + slowdown;
  const Effect effect = effect_of(sides.a, sides.b, rule);
  return verdict_of(effect, effect.p, rule) == Verdict::slower;
}

}  // namespace

std::optional<double> smallest_detectable(std::span<const double> a, std::span<const double> b, std::size_t launches,
                                          Rule rule) {
  if (a.empty() || launches < fewest_launches(1, rule)) return std::nullopt;
  rule.resamples = kResamples;
  Random random(rule.seed);
  // The same draws for every slowdown, so that power grows with it.
  std::vector<DrawnSides> draws;
  for (int i = 0; i < kSimulations; ++i) {
    if (rule.interleaved) {
      draws.push_back(draw_pairs(a, b, launches, random));
    } else {
      std::vector<double> side = draw_side(a, b, launches, random);
      draws.push_back({std::move(side), draw_side(a, b, launches, random)});
    }
  }
  const auto is_enough = [&](int steps) {
    return std::count_if(draws.begin(), draws.end(),
                         [&](const DrawnSides& sides) { return is_detected(sides, steps * kStep, rule); }) >= kNeeded;
  };
  int below = 0, enough = kMostSteps;
  if (!is_enough(enough)) return std::nullopt;
  while (enough - below > 1) {
    const int middle = (below + enough) / 2;
    (is_enough(middle) ? enough : below) = middle;
  }
  return enough * kStep;
}

}  // namespace col::colbench

// The rule that decides whether two sets of launches are faster, slower, or undecided. All functions are pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "colbench/stats/sample.hpp"

namespace col::colbench {

enum class Change : std::uint8_t { faster, slower, undecided };  // B, against A
std::string_view to_string(Change verdict);

struct Rule {
  double alpha = 0.05;       // the largest probability that chance alone gives any verdict
  double min_effect = 0.03;  // a smaller difference does not count
  // A's and B's launches were made in turn, so that a longer disturbance of the machine affects both: a[i] and b[i] are
  // next to each other in time.
  bool interleaved = false;
  int resamples = 2000;
  std::uint64_t seed = 1;
};

// What the medians of launches say. One launch is one observation: its samples share a placement in memory, a state of
// the machine and a moment, so more of them say little more.
struct Effect {
  double median_a = 0, median_b = 0;  // of the launches
  // B over A. Interleaved: of the remainders, after each launch is divided by the median of the six around it (its own
  // pair, the one before and the one after). This median is the level of noise that both sides share.
  double ratio = 1;
  // The 95 % interval of the ratio. By the rank-sum test, in which three launches count as one observation, as in
  // launch_interval(); interleaved, by bootstrap. From 0 to infinity with too few launches.
  Interval interval = {};
  // Of the rank-sum test: by Mann and Whitney; interleaved, by exchange of the remainders within pairs.
  double p = 1;
  double smallest_p = 1;  // the smallest p that this number of launches can give
  // Above 1 if launches are similar to the ones before them; p takes this into account. Always 1 if interleaved.
  double dependence = 1;
};
// Requires: positive medians of launches in the order of time, on both sides at least one; interleaved: equal numbers.
Effect effect_of(std::span<const double> a, std::span<const double> b, const Rule& rule);

// Slower: `p` (adjusted for the number of tests) is at most alpha, the ratio is at least 1 + min_effect, and its
// interval is above 1. All three are required, so that a verdict never contradicts the numbers beside it. Faster: the
// same for A over B.
Change verdict_of(const Effect& effect, double p, const Rule& rule);

// The smallest number of launches a side with which this number of tests can give a verdict.
std::size_t fewest_launches(std::size_t tests, const Rule& rule);

}  // namespace col::colbench

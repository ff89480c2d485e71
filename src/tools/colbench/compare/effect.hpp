// The rule by which two sets of launches are faster, slower, or undecided. All of it pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "colbench/stats/interval.hpp"

namespace col::colbench {

enum class Verdict : std::uint8_t { faster, slower, undecided };  // B, against A
std::string_view to_string(Verdict verdict);

struct Rule {
  double alpha = 0.05;       // how often, at most, chance alone may give any verdict
  double min_effect = 0.03;  // a smaller difference does not count
  // A's and B's launches were made in turn, so that what disturbs the machine for a while disturbs both: a[i] and b[i]
  // are next to each other in time.
  bool interleaved = false;
  int resamples = 2000;
  std::uint64_t seed = 1;
};

// What the medians of launches say. One launch is one observation: its samples share a placement in memory, a state of
// the machine and a moment, so that more of them tell little more.
struct Effect {
  double median_a = 0, median_b = 0;  // of the launches
  // B over A. Interleaved: of what is left when each launch is divided by the median of the six around it (its own
  // pair, the one before and the one after), which is the level of noise that both sides share.
  double ratio = 1;
  // Of the ratio, 95 %. By the rank-sum test, where three launches count as one observation, as launch_interval() has
  // it; interleaved, by bootstrap. From 0 to infinity with too few launches.
  Interval interval = {};
  // Of the rank-sum test: by Mann and Whitney; interleaved, by exchange within pairs of what is left.
  double p = 1;
  double smallest_p = 1;  // that so many launches could have given
  // Above 1 when launches resemble the ones before them; p allows for it. Always 1 when interleaved.
  double dependence = 1;
};
// Requires: positive medians of launches in the order of time, none of them empty; interleaved: equally many.
Effect effect_of(std::span<const double> a, std::span<const double> b, const Rule& rule);

// Slower: `p` (adjusted for the number of tests) is at most alpha, the ratio is at least 1 + min_effect, and its
// interval is above 1. All three are required, so that a verdict never contradicts the numbers beside it. Faster: the
// same for A over B.
Verdict verdict_of(const Effect& effect, double p, const Rule& rule);

// Launches a side below which no verdict can come out when so many tests are made.
std::size_t fewest_launches(std::size_t tests, const Rule& rule);

}  // namespace col::colbench

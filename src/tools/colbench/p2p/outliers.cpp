#include "colbench/p2p/outliers.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>

#include "colbench/report/values.hpp"

namespace col::colbench {
namespace {

constexpr double kLeastRatio = 1.2;
constexpr double kDeviations = 5;
constexpr std::size_t kLeastValues = 3;
constexpr std::size_t kMostNamed = 8;

// What a value must exceed to be slower than the rest.
struct Threshold {
  explicit Threshold(std::span<const PairTime> times) {
    std::vector<double> values;
    for (const PairTime& time : times) values.push_back(time.seconds);
    median = lower_median(values);
    for (double& value : values) value = std::abs(value - median);
    limit = std::max(median * kLeastRatio, median + kDeviations * lower_median(values));
  }
  double median = 0, limit = 0;
};

bool has(const PairTime& pair, int rank) {
  return pair.first == rank || pair.second == rank;
}

// For each rank with a pair: the lower quartile of its pairs, with the rank as `first`. A slow rank is slow in its best
// pairs too; a good rank that has slow peers is not.
std::vector<PairTime> faster_pairs(int ranks, std::span<const PairTime> pairs) {
  std::vector<PairTime> scores;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<PairTime> own;
    std::copy_if(pairs.begin(), pairs.end(), std::back_inserter(own),
                 [&](const auto& pair) { return has(pair, rank); });
    if (own.empty()) continue;
    std::sort(own.begin(), own.end(), [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
    const PairTime& quartile = own[(own.size() - 1) / 4];
    scores.push_back({rank, rank, quartile.seconds, quartile.low});
  }
  return scores;
}

}  // namespace

double lower_median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::optional<PairTime> pair_time_of(const Cell& cell) {
  const CellStatistics statistics = statistics_of(cell);
  if (!cell.spec.pair || !cell.invalid.empty() || statistics.n == 0) return std::nullopt;
  const std::vector<double> medians = launch_medians(cell);
  const double low = statistics.has_interval() ? statistics.low : *std::min_element(medians.begin(), medians.end());
  return PairTime{cell.spec.pair->first, cell.spec.pair->second, statistics.median, low};
}

Outliers find_outliers(int ranks, std::span<const PairTime> pairs) {
  Outliers found;
  const std::vector<PairTime> scores = faster_pairs(ranks, pairs);
  if (scores.size() < kLeastValues || pairs.size() < kLeastValues) return found;
  found.comparable = true;
  const Threshold of_ranks(scores);
  for (const PairTime& score : scores) {
    if (score.low > of_ranks.limit)
      found.ranks.push_back({score.first, score.seconds, score.seconds / of_ranks.median});
  }
  std::vector<PairTime> rest(pairs.begin(), pairs.end());
  std::erase_if(rest, [&](const PairTime& pair) {
    return std::any_of(found.ranks.begin(), found.ranks.end(), [&](const auto& slow) { return has(pair, slow.rank); });
  });
  if (rest.empty()) return found;
  const Threshold of_pairs(rest);
  found.median = of_pairs.median;
  if (rest.size() < kLeastValues) return found;
  std::sort(rest.begin(), rest.end(),
            [](const auto& a, const auto& b) { return std::pair(a.first, a.second) < std::pair(b.first, b.second); });
  for (const PairTime& pair : rest) {
    if (pair.low > of_pairs.limit) found.pairs.push_back({pair, pair.seconds / of_pairs.median});
  }
  return found;
}

std::string outlier_text(const Outliers& outliers, const std::string& what) {
  if (!outliers.comparable) return fmt::format("{}: too few pairs to tell whether one is slower than the rest\n", what);
  std::string text;
  for (const Outliers::Rank& slow : outliers.ranks) {
    text += fmt::format("{}: rank {} is slow with everybody: even its faster pairs take {}, {:.2f} times the median\n",
                        what, slow.rank, time_text(slow.seconds), slow.ratio);
  }
  const std::size_t named = std::min(outliers.pairs.size(), kMostNamed);
  for (std::size_t i = 0; i < named; ++i) {
    const Outliers::Pair& slow = outliers.pairs[i];
    text += fmt::format("{}: ranks {} and {} are slow with each other: {}, {:.2f} times the median\n", what,
                        slow.time.first, slow.time.second, time_text(slow.time.seconds), slow.ratio);
  }
  if (named < outliers.pairs.size())
    text += fmt::format("{}: and {} more pairs are slow\n", what, outliers.pairs.size() - named);
  if (text.empty()) {
    text = fmt::format("{}: no pair and no rank is slower than the rest (beyond the median by 20 % and 5 deviations)\n",
                       what);
  }
  return text;
}

}  // namespace col::colbench

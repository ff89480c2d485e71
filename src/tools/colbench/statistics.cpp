// What follows from the samples of a cell.
#include <algorithm>
#include <cmath>

#include "colbench/results.hpp"
#include "colbench/stats/autocorrelation.hpp"
#include "colbench/stats/deviation.hpp"
#include "colbench/stats/median_interval.hpp"
#include "colbench/stats/outliers.hpp"
#include "colbench/stats/quantile.hpp"

namespace col::colbench {

std::vector<double> all_seconds(const Cell& cell) {
  std::vector<double> all;
  for (const LaunchSamples& launch : cell.launches) {
    all.insert(all.end(), launch.seconds.begin(), launch.seconds.end());
  }
  return all;
}

std::vector<double> launch_medians(const Cell& cell) {
  std::vector<double> medians;
  for (const LaunchSamples& launch : cell.launches) {
    if (!launch.seconds.empty()) medians.push_back(median(launch.seconds));
  }
  return medians;
}

CellStatistics statistics_of(const Cell& cell) {
  CellStatistics statistics;
  std::vector<double> sorted = all_seconds(cell);
  statistics.n = sorted.size();
  if (sorted.empty()) return statistics;
  std::sort(sorted.begin(), sorted.end());
  statistics.median = quantile(sorted, 0.5);
  const Interval interval = median_interval(sorted);
  statistics.low = interval.low;
  statistics.high = interval.high;
  statistics.min = sorted.front();
  statistics.max = sorted.back();
  statistics.p95 = quantile(sorted, 0.95);
  if (sorted.size() >= 100) statistics.p99 = quantile(sorted, 0.99);
  statistics.mad = median_deviation(sorted);
  statistics.outliers = tukey_outliers(sorted);

  std::vector<std::vector<double>> series;
  std::vector<double> skews, on_device;
  for (const LaunchSamples& launch : cell.launches) {
    series.push_back(launch.seconds);
    skews.insert(skews.end(), launch.start_skew.begin(), launch.start_skew.end());
    on_device.insert(on_device.end(), launch.device_seconds.begin(), launch.device_seconds.end());
  }
  statistics.autocorrelation = lag1_autocorrelation(series);
  statistics.skew = median_in_place(skews);
  if (!on_device.empty()) statistics.device_median = median_in_place(on_device);

  const std::vector<double> medians = launch_medians(cell);
  if (medians.size() < 2 || statistics.median <= 0) return statistics;
  for (const double launch : medians) {
    const double distance = std::abs(launch - statistics.median) / statistics.median;
    statistics.launch_spread = std::max(statistics.launch_spread, distance);
  }
  return statistics;
}

}  // namespace col::colbench

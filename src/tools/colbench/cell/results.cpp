// What follows from the samples of a cell.
#include "colbench/cell/results.hpp"

#include <algorithm>

#include "colbench/stats/sample.hpp"

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
  std::vector<double> medians = launch_medians(cell);
  std::sort(medians.begin(), medians.end());
  statistics.median = quantile(medians, 0.5);
  const Interval interval = launch_interval(medians);
  statistics.low = interval.low;
  statistics.high = interval.high;
  if (medians.size() > 1 && statistics.median > 0)
    statistics.launch_spread = (quantile(medians, 0.75) - quantile(medians, 0.25)) / statistics.median;
  statistics.min = sorted.front();
  statistics.max = sorted.back();
  statistics.p95 = quantile(sorted, 0.95);
  if (sorted.size() >= 100) statistics.p99 = quantile(sorted, 0.99);
  statistics.mad = median_deviation(sorted);
  statistics.outliers = tukey_outliers(sorted);

  std::vector<std::vector<double>> series;
  std::vector<double> skews, on_device;  // on_device: medians of launches
  for (const LaunchSamples& launch : cell.launches) {
    series.push_back(launch.seconds);
    skews.insert(skews.end(), launch.start_skew.begin(), launch.start_skew.end());
    if (!launch.device_seconds.empty()) on_device.push_back(median(launch.device_seconds));
  }
  statistics.autocorrelation = lag1_autocorrelation(series);
  statistics.skew = median_in_place(skews);
  if (!on_device.empty()) statistics.device_median = median_in_place(on_device);
  return statistics;
}

namespace {

// Messages go in one direction at a time, or their time is of one.
double bus_factor(Operation operation, int ranks) {
  const CollectiveRow* const row = find_row(operation);
  return row != nullptr ? row->bus_factor(std::max(ranks, 1)) : 1;
}

}  // namespace

double algorithm_bandwidth(const CellSpec& spec, double seconds) {
  return seconds > 0 ? static_cast<double>(spec.bytes) / seconds : 0;
}

double bus_bandwidth(const CellSpec& spec, int group_size, double seconds) {
  return algorithm_bandwidth(spec, seconds) * bus_factor(spec.operation, group_size);
}

}  // namespace col::colbench

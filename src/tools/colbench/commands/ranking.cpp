#include "colbench/commands/ranking.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace col::colbench {
namespace {

// From 1; equal ones share the mean of theirs.
std::vector<double> shared_ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t k) { return values[i] < values[k]; });
  std::vector<double> ranks(values.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i + 1;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    for (std::size_t k = i; k < end; ++k) ranks[order[k]] = static_cast<double>(i + 1 + end) / 2;
    i = end;
  }
  return ranks;
}

}  // namespace

std::string algorithm_of(const Cell& cell) {
  const bool asked = cell.spec.algorithm != "auto" && cell.spec.algorithm != "all" && !cell.spec.algorithm.empty();
  return asked || cell.algorithm.empty() ? cell.spec.algorithm : cell.algorithm;
}

std::vector<RankedAlgorithm> ranked_algorithms(std::span<const Cell* const> cells) {
  std::vector<RankedAlgorithm> ranked;
  for (const Cell* cell : cells) {
    if (!cell->invalid.empty()) continue;
    RankedAlgorithm algorithm{.cell = cell, .statistics = statistics_of(*cell)};
    if (algorithm.statistics.n > 0) ranked.push_back(algorithm);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const RankedAlgorithm& a, const RankedAlgorithm& b) {
    return a.statistics.median < b.statistics.median;
  });
  std::vector<RankedAlgorithm*> by_model;
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    ranked[i].rank = static_cast<int>(i) + 1;
    if (i + 1 < ranked.size()) ranked[i].apart_from_next = ranked[i].statistics.high < ranked[i + 1].statistics.low;
    if (ranked[i].cell->model_seconds) by_model.push_back(&ranked[i]);
  }
  std::stable_sort(by_model.begin(), by_model.end(), [](const RankedAlgorithm* a, const RankedAlgorithm* b) {
    return *a->cell->model_seconds < *b->cell->model_seconds;
  });
  for (std::size_t i = 0; i < by_model.size(); ++i) by_model[i]->model_rank = static_cast<int>(i) + 1;
  return ranked;
}

std::optional<double> rank_correlation(std::span<const double> a, std::span<const double> b) {
  if (a.size() < 2) return std::nullopt;
  const std::vector<double> x = shared_ranks(a), y = shared_ranks(b);
  const double mean = static_cast<double>(a.size() + 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  if (xx == 0 || yy == 0) return std::nullopt;
  return xy / std::sqrt(xx * yy);
}

std::vector<std::vector<const Cell*>> compared_cells(std::span<const Cell> cells) {
  const auto key = [](const Cell& cell) {
    CellSpec spec = cell.spec;
    spec.algorithm.clear();
    return spec;
  };
  std::vector<std::vector<const Cell*>> groups;
  for (const Cell& cell : cells) {
    const auto group = std::find_if(groups.begin(), groups.end(),
                                    [&](const auto& others) { return key(*others.front()) == key(cell); });
    if (group == groups.end())
      groups.push_back({&cell});
    else
      group->push_back(&cell);
  }
  return groups;
}

}  // namespace col::colbench

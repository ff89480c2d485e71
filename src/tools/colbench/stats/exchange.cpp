#include "colbench/stats/exchange.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "colbench/stats/rank_sum.hpp"

namespace col::colbench {

double exchange_p(std::span<const double> a, std::span<const double> b) {
  std::vector<double> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  const std::vector<double> ranks = ranks_of(all);

  // Ranks are whole or half numbers: twice their difference is whole. Sums are counted from -most to most.
  std::vector<long> differences(a.size());
  long sum = 0, most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    differences[i] = std::lround(2 * (ranks[a.size() + i] - ranks[i]));
    sum += differences[i];
    most += std::labs(differences[i]);
  }
  std::vector<double> shares(static_cast<std::size_t>(2 * most + 1), 0.0);
  shares[static_cast<std::size_t>(most)] = 1;
  for (const long difference : differences) {
    std::vector<double> next(shares.size(), 0.0);
    for (std::size_t i = 0; i < shares.size(); ++i) {
      if (shares[i] == 0) continue;
      next[i + static_cast<std::size_t>(std::labs(difference))] += shares[i] / 2;
      next[i - static_cast<std::size_t>(std::labs(difference))] += shares[i] / 2;
    }
    shares = std::move(next);
  }
  double as_far = 0;
  for (long i = -most; i <= most; ++i)
    if (std::labs(i) >= std::labs(sum)) as_far += shares[static_cast<std::size_t>(i + most)];
  return std::min(1.0, as_far);
}

double smallest_exchange_p(std::size_t pairs) {
  return std::min(1.0, 2 * std::exp2(-static_cast<double>(pairs)));
}

}  // namespace col::colbench

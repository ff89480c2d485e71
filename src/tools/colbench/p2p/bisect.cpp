#include "colbench/p2p/bisect.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "colbench/report/values.hpp"
#include "common/table.hpp"

namespace col::colbench {
namespace {

std::string range_text(int first, int last) {
  return first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
}

std::string bisection_text(const std::vector<RankPair>& pairs) {
  return fmt::format("ranks {} against {}", range_text(pairs.front().first, pairs.back().first),
                     range_text(pairs.front().second, pairs.back().second));
}

// A cut that carries so much less than the others per pair is slow.
constexpr double kSlowCut = 1 / 1.2;

bool is_good(const Cell& cell, std::size_t bytes) {
  return cell.spec.operation == Operation::bidirectional && cell.spec.bytes == bytes && cell.invalid.empty();
}

double both_ways(std::size_t bytes, double seconds) {
  return seconds > 0 ? 2 * static_cast<double>(bytes) / seconds : 0;
}

double per_pair(const CutResult& result) {
  return result.cut.pairs.empty() ? 0 : result.together / static_cast<double>(result.cut.pairs.size());
}

std::string share_text(double part, double whole) {
  return whole > 0 && part > 0 ? percent_text(part / whole) + " %" : "-";
}

// Cuts that carry less per pair than the middle one by more than the rule allows. At least three make a comparison.
std::vector<const CutResult*> slow_cuts(std::span<const CutResult> cuts) {
  std::vector<double> rates;
  for (const CutResult& cut : cuts) {
    if (cut.together > 0) rates.push_back(per_pair(cut));
  }
  std::vector<const CutResult*> slow;
  if (rates.size() < 3) return slow;
  std::sort(rates.begin(), rates.end());
  const double middle = rates[rates.size() / 2];
  for (const CutResult& cut : cuts) {
    if (cut.together > 0 && per_pair(cut) < kSlowCut * middle) slow.push_back(&cut);
  }
  return slow;
}

bool contains(const Cut& cut, const Outliers& outliers) {
  return std::any_of(cut.pairs.begin(), cut.pairs.end(), [&outliers](const RankPair& pair) {
    for (const Outliers::Rank& slow : outliers.ranks) {
      if (pair.first == slow.rank || pair.second == slow.rank) return true;
    }
    return std::any_of(outliers.pairs.begin(), outliers.pairs.end(), [&pair](const Outliers::Pair& slow) {
      return std::minmax(slow.time.first, slow.time.second) == std::minmax(pair.first, pair.second);
    });
  });
}

}  // namespace

std::vector<RankPair> pairs_at_once(const std::string& groups, int ranks) {
  const CellSpec spec{.operation = Operation::bidirectional, .ranks = ranks, .groups = groups};
  std::vector<RankPair> pairs;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto partner = partner_of(spec, rank, ranks);
    if (partner && rank < partner->rank) pairs.emplace_back(rank, partner->rank);
  }
  return pairs;
}

std::vector<Cut> cuts_of(int ranks) {
  std::vector<Cut> cuts;
  const auto append = [&cuts](Cut cut) {
    const auto same = [&cut](const Cut& other) { return other.pairs == cut.pairs; };
    if (std::none_of(cuts.begin(), cuts.end(), same)) cuts.push_back(std::move(cut));
  };
  const auto halves = pairs_at_once("bisect", ranks);
  append({"bisect", bisection_text(halves), halves});
  for (int distance = 1; distance < ranks; distance *= 2) {
    const std::string groups = fmt::format("bisect:{}", distance);
    append({groups, distance == 1 ? "even ranks against odd" : fmt::format("every {} ranks against the next", distance),
            pairs_at_once(groups, ranks)});
  }
  return cuts;
}

std::vector<RankPair> search_pairs(int ranks) {
  std::set<RankPair> pairs;
  for (const Cut& cut : cuts_of(ranks)) pairs.insert(cut.pairs.begin(), cut.pairs.end());
  const auto partners = [&pairs](int rank) {
    return std::count_if(pairs.begin(), pairs.end(),
                         [rank](const RankPair& pair) { return pair.first == rank || pair.second == rank; });
  };
  for (int rank = 0; rank < ranks; ++rank) {
    for (int other = 0; other < ranks && partners(rank) < std::min(2, ranks - 1); ++other) {
      if (other != rank) pairs.insert(std::minmax(rank, other));
    }
  }
  return {pairs.begin(), pairs.end()};
}

std::vector<PairTime> alone_times(std::span<const Cell> cells, std::size_t bytes) {
  std::vector<PairTime> times;
  for (const Cell& cell : cells) {
    const std::optional<PairTime> time = pair_time_of(cell);
    if (time && is_good(cell, bytes)) times.push_back(*time);
  }
  return times;
}

std::vector<CutResult> cut_results(std::span<const Cell> cells, int ranks, std::size_t bytes) {
  const std::vector<PairTime> alone = alone_times(cells, bytes);
  std::vector<CutResult> results;
  for (Cut& cut : cuts_of(ranks)) {
    CutResult result;
    for (const Cell& cell : cells) {
      if (!is_good(cell, bytes) || cell.spec.groups != cut.groups) continue;
      result.together = static_cast<double>(cut.pairs.size()) * both_ways(bytes, statistics_of(cell).median);
    }
    std::size_t found = 0;
    for (const PairTime& time : alone) {
      if (std::find(cut.pairs.begin(), cut.pairs.end(), RankPair(time.first, time.second)) == cut.pairs.end()) continue;
      const double rate = both_ways(bytes, time.seconds);
      result.alone += rate;
      result.best_pair = std::max(result.best_pair, rate);
      result.worst_pair = found++ == 0 ? rate : std::min(result.worst_pair, rate);
    }
    if (found < cut.pairs.size()) result.alone = 0;  // a part of them is no sum
    result.cut = std::move(cut);
    results.push_back(std::move(result));
  }
  return results;
}

std::string explanation(std::span<const CutResult> cuts, const Outliers& outliers, const std::string& what) {
  std::string text = outlier_text(outliers, what + ", one pair at a time");
  for (const CutResult* slow : slow_cuts(cuts)) {
    const bool explained = contains(slow->cut, outliers);
    text +=
        fmt::format("the cut {} is slow: {} GB/s for each pair; {}\n", slow->cut.text, bandwidth_text(per_pair(*slow)),
                    explained ? "what is named above is part of it"
                              : "none of its pairs is slow alone: they share what limits them");
  }
  return text;
}

std::string bisect_text(std::span<const Cell> cells, int ranks, std::size_t bytes, tools::Style style) {
  const std::vector<CutResult> cuts = cut_results(cells, ranks, bytes);
  const std::string what = fmt::format("{} messages both ways", size_text(bytes));
  const CutResult& bisection = cuts.front();
  std::string text = fmt::format("bisection of {} ranks, {}: {} GB/s across the cut, {} pairs at once\n", ranks, what,
                                 bandwidth_text(bisection.together), bisection.cut.pairs.size());
  if (bisection.best_pair > 0) {
    text += fmt::format(
        "one of its pairs alone: {} GB/s{}; all at once reach {} of the sum\n\n", bandwidth_text(bisection.worst_pair),
        bisection.best_pair > bisection.worst_pair ? fmt::format(" to {} GB/s", bandwidth_text(bisection.best_pair))
                                                   : "",
        share_text(bisection.together, bisection.alone));
  }
  std::vector<std::vector<tools::TextCell>> rows = {
      {{"cut"}, {"pairs"}, {"GB/s at once"}, {"GB/s one by one, sum"}, {"share"}, {"slowest pair alone"}}};
  for (const CutResult& result : cuts) {
    rows.push_back({{result.cut.text},
                    {std::to_string(result.cut.pairs.size())},
                    {bandwidth_text(result.together)},
                    {bandwidth_text(result.alone)},
                    {share_text(result.together, result.alone)},
                    {bandwidth_text(result.worst_pair)}});
  }
  return text + tools::render_table(rows, style) + "\n" +
         explanation(cuts, find_outliers(ranks, alone_times(cells, bytes)), what);
}

}  // namespace col::colbench

#include "colbench/p2p/cuts.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "colbench/rank/message_workload.hpp"

namespace col::colbench {
namespace {

std::string range_text(int first, int last) {
  return first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
}

std::string bisection_text(const std::vector<RankPair>& pairs) {
  return fmt::format("ranks {} against {}", range_text(pairs.front().first, pairs.back().first),
                     range_text(pairs.front().second, pairs.back().second));
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

}  // namespace col::colbench

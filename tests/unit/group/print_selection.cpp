// Prints configs/selection.json as the cost model has it. usage: print_selection DATE > configs/selection.json
//
// For every collective, kind of link and class of group sizes, all algorithms are simulated over a grid of sizes. A
// rule then covers a range of sizes in which its algorithm is the fastest or close to it: among all ways to cut the
// grid into ranges, the one with the least sum of slow-downs plus a price per rule, so that the table stays readable
// where algorithms are all but equal. Reductions get up to three such lists, one after the other: for operators that
// commute, for those that do not, and for sums in rank order; a rule whose algorithm does not keep the order is passed
// over.
//
// Rules for several nodes come first. They are for nodes of two ranks and more: with one rank on each, the algorithms
// of one level are as good. They are simulated on ranks in order of the nodes and dealt to them in turn, with one
// network port for each node, and made for operators that commute and for sums in rank order.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/collective.hpp>
#include <col/plan.hpp>
#include <col/select.hpp>

namespace col {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// A rule more has to save as much as an algorithm that takes twice as long at one point of the grid.
constexpr double kPricePerRule = 1;
// For several nodes, there are few rules in all.
constexpr double kPricePerNodeRule = 0.25;
constexpr std::size_t kElement = 4;

const CostModel kShm = {.intra = {1e-6, 1 / 8e9}, .gamma = 1 / 10e9, .copy = 1 / 10e9, .memory_bandwidth = 30e9};
const CostModel kOthers = {.intra = {60e-6, 1 / 2.5e9}, .gamma = 1 / 10e9, .copy = 1 / 10e9, .memory_bandwidth = 30e9};
// The network is 10 Gbit/s.
const CostModel kNodes = {.intra = kShm.intra,
                          .inter = {30e-6, 1 / 1.25e9},
                          .gamma = 1 / 10e9,
                          .copy = 1 / 10e9,
                          .memory_bandwidth = 30e9,
                          .nic_shared = true};
constexpr std::string_view kMachine =
    "none: simulated. shm: 1 us + n / 8 GB/s a message; others, as Gloo on loopback: 60 us + n / 2.5 GB/s; one port "
    "per rank, all ranks on one node, reductions and copies 10 GB/s a rank, memory 30 GB/s for all, float32; several "
    "nodes: shm within a node, 30 us + n / 1.25 GB/s between nodes, one port a node, ranks in order and dealt in turn; "
    "that 'shared' comes first in shm: docs/performance.md";

struct RankClass {
  int least, most;  // inclusive
  std::vector<int> powers_of_two, others;
};
const std::vector<RankClass> kClasses = {
    {1, 2, {2}, {}},
    {3, 4, {4}, {3}},
    {5, 16, {8, 16}, {6, 7, 12}},
    {17, 0, {32, 64}, {24, 48}},
};
// How many nodes a rule is for, and the groups that it is simulated on: nodes and ranks on each.
struct NodeClass {
  int least, most;  // inclusive; most 0: no limit
  std::vector<std::pair<int, int>> groups;
};
const std::vector<NodeClass> kNodeClasses = {
    {2, 2, {{2, 2}, {2, 4}, {2, 8}}},
    {3, 4, {{3, 4}, {4, 2}, {4, 4}}},
    {5, 0, {{8, 2}, {8, 4}}},
};
// Made to be compared with: they are taken where nothing else keeps the order of ranks.
constexpr std::array<std::string_view, 3> kBaselines = {"bde_half", "ps_central", "ps_sharded"};

// The sizes at which algorithms are compared: 64 bytes to 64 MiB.
std::vector<std::size_t> grid() {
  std::vector<std::size_t> sizes;
  for (std::size_t bytes = 64; bytes <= (std::size_t{64} << 20); bytes *= 2) sizes.push_back(bytes);
  return sizes;
}

struct Candidate {
  const Algorithm* algorithm;
  AlgorithmSpec spec;
};

std::vector<Candidate> candidates_of(Collective collective, FoldOrder order) {
  std::vector<Candidate> candidates;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective != collective || algorithm.order < order) continue;
    const bool baseline = std::find(kBaselines.begin(), kBaselines.end(), algorithm.name) != kBaselines.end();
    if (baseline && order != FoldOrder::rank_order) continue;
    // Its memory grows with the ranks, of which no rule for nodes has a limit.
    if (algorithm.name == "two_level_ordered" && order != FoldOrder::rank_order) continue;
    candidates.push_back({&algorithm, {.name = std::string(algorithm.name)}});
    // Of algorithms that tell neighbours their counts, it says what leaders carry: their memory, too.
    if (algorithm.parameters.find("segment") != std::string_view::npos && algorithm.neighbour_counts == nullptr)
      candidates.push_back({&algorithm, {.name = std::string(algorithm.name), .segment_bytes = 512 * 1024}});
  }
  return candidates;
}

// The node of each rank.
using Layout = std::vector<int>;

std::vector<Layout> on_one_node(const std::vector<int>& sizes) {
  std::vector<Layout> layouts;
  for (const int ranks : sizes) layouts.emplace_back(static_cast<std::size_t>(ranks), 0);
  return layouts;
}

// Ranks in the order of nodes, and dealt to them in turn.
std::vector<Layout> on_nodes(const std::vector<std::pair<int, int>>& groups) {
  std::vector<Layout> layouts;
  for (const auto& [nodes, each] : groups) {
    Layout in_order, in_turn;
    for (int rank = 0; rank < nodes * each; ++rank) {
      in_order.push_back(rank / each);
      in_turn.push_back(rank % nodes);
    }
    layouts.insert(layouts.end(), {in_order, in_turn});
  }
  return layouts;
}

PlanProblem::Spec problem_of(Collective collective, const Layout& layout, std::size_t bytes,
                             std::size_t segment_bytes) {
  const std::size_t p = layout.size();
  const CollectiveRow& row = row_of(collective);
  const std::size_t count = std::max<std::size_t>(1, bytes / kElement / (row.has_blocks() ? p : 1));
  PlanProblem::Spec spec{.collective = collective, .size = static_cast<int>(p), .node_of_rank = layout};
  if (row.has_counts())
    spec.counts.assign(collective == Collective::alltoallv ? p * p : p, count);
  else
    spec.count = count;
  spec.parameters.segment = segment_bytes / kElement;
  return spec;
}

double seconds(const Candidate& candidate, const Layout& layout, std::size_t bytes, const CostModel& model) {
  const PlanProblem problem(problem_of(candidate.algorithm->collective, layout, bytes, candidate.spec.segment_bytes));
  if (candidate.algorithm->refuse(problem.request(0))) return kNever;
  return simulate(problem, plans_of(*candidate.algorithm, problem), model, kElement, kElement).seconds;
}

struct Range {
  std::size_t most;  // of the grid; the next range begins above it
  AlgorithmSpec algorithm;
  bool operator==(const Range&) const = default;
};

// slowness[candidate][size]: log2 of how many times longer than the fastest, on average over `layouts`. On several
// nodes, those that it refuses do not count: its rule is passed over there.
std::vector<std::vector<double>> slowness(const std::vector<Candidate>& candidates, const std::vector<Layout>& layouts,
                                          const std::vector<std::size_t>& sizes, const CostModel& model,
                                          bool of_nodes) {
  std::vector<std::vector<double>> result(candidates.size(), std::vector<double>(sizes.size(), 0));
  for (std::size_t s = 0; s < sizes.size(); ++s) {
    std::vector<int> served(candidates.size(), 0);
    for (const Layout& layout : layouts) {
      std::vector<double> times;
      for (const Candidate& candidate : candidates) times.push_back(seconds(candidate, layout, sizes[s], model));
      const double best = *std::min_element(times.begin(), times.end());
      for (std::size_t c = 0; c < candidates.size(); ++c) {
        if (of_nodes && times[c] == kNever) continue;
        result[c][s] += std::log2(times[c] / best);
        ++served[c];
      }
    }
    for (std::size_t c = 0; c < candidates.size(); ++c)
      result[c][s] = served[c] == 0 ? kNever : result[c][s] / served[c];
  }
  return result;
}

struct Cut {
  std::vector<Range> ranges;
  double slow;  // the sum of slow-downs
};

// The cheapest way to cut the grid into ranges: dynamic programming over "candidate c at size s".
Cut cut(const std::vector<Candidate>& candidates, const std::vector<std::size_t>& sizes,
        const std::vector<std::vector<double>>& slow, double price) {
  const std::size_t n = candidates.size();
  std::vector<double> total(n, 0);
  std::vector<std::vector<std::size_t>> came_from(sizes.size(), std::vector<std::size_t>(n, 0));
  for (std::size_t s = 0; s < sizes.size(); ++s) {
    const auto best = static_cast<std::size_t>(std::min_element(total.begin(), total.end()) - total.begin());
    std::vector<double> next(n);
    for (std::size_t c = 0; c < n; ++c) {
      const bool stays = s == 0 || total[c] <= total[best] + price;
      came_from[s][c] = stays ? c : best;
      next[c] = (stays ? total[c] : total[best] + price) + slow[c][s];
    }
    total = std::move(next);
  }
  auto c = static_cast<std::size_t>(std::min_element(total.begin(), total.end()) - total.begin());
  Cut result{{{sizes.back(), candidates[c].spec}}, slow[c].back()};
  for (std::size_t s = sizes.size(); s-- > 1;) {
    const std::size_t before = came_from[s][c];
    if (before != c) result.ranges.insert(result.ranges.begin(), {sizes[s - 1], candidates[before].spec});
    c = before;
    result.slow += slow[c][s - 1];
  }
  return result;
}

struct RuleList {
  int least, most;  // ranks, or nodes; most 0: no limit
  std::optional<bool> power_of_two;
  std::vector<Range> ranges;
  bool of_nodes = false;
  bool operator==(const RuleList&) const = default;
};

// What ranks know of the sizes of calls with private counts differs from rank to rank: no rule may depend on them.
bool knows_bytes(Collective collective) {
  return !row_of(collective).has_private_counts() && collective != Collective::barrier;
}

// A class like the one below it widens that one.
void add_list(RuleList list, std::vector<RuleList>& lists) {
  const auto below = std::find_if(lists.rbegin(), lists.rend(),
                                  [&](const RuleList& l) { return l.power_of_two == list.power_of_two; });
  if (below != lists.rend() && below->ranges == list.ranges && below->most + 1 == list.least)
    below->most = list.most;
  else
    lists.push_back(std::move(list));
}

double price_of_rules(Collective collective, double price) {
  return knows_bytes(collective) ? price : kNever;
}

std::vector<RuleList> lists_of(Collective collective, FoldOrder order, const CostModel& model) {
  const std::vector<std::size_t> sizes = grid();
  const std::vector<Candidate> candidates = candidates_of(collective, order);
  std::vector<RuleList> lists;
  for (const RankClass& ranks : kClasses) {
    const auto cut_for = [&](const std::vector<int>& sample) {
      return cut(candidates, sizes, slowness(candidates, on_one_node(sample), sizes, model, false),
                 price_of_rules(collective, kPricePerRule));
    };
    std::vector<int> sample = ranks.powers_of_two;
    sample.insert(sample.end(), ranks.others.begin(), ranks.others.end());
    const Cut both = cut_for(sample);
    const Cut powers = cut_for(ranks.powers_of_two);
    const Cut others = ranks.others.empty() ? powers : cut_for(ranks.others);
    const double saved = 2 * both.slow - powers.slow - others.slow;
    const auto more_rules =
        static_cast<double>(powers.ranges.size() + others.ranges.size()) - static_cast<double>(both.ranges.size());
    if (ranks.others.empty() || saved <= more_rules * kPricePerRule) {
      add_list({ranks.least, ranks.most, std::nullopt, both.ranges}, lists);
    } else {
      add_list({ranks.least, ranks.most, true, powers.ranges}, lists);
      add_list({ranks.least, ranks.most, false, others.ranges}, lists);
    }
  }
  return lists;
}

// For several nodes; none if no algorithm of the collective and order knows of nodes.
std::vector<RuleList> lists_of_nodes(Collective collective, FoldOrder order) {
  const std::vector<std::size_t> sizes = grid();
  const std::vector<Candidate> candidates = candidates_of(collective, order);
  const bool any_knows = std::any_of(candidates.begin(), candidates.end(), [](const Candidate& candidate) {
    return candidate.algorithm->name.starts_with("two_level");
  });
  std::vector<RuleList> lists;
  for (const NodeClass& nodes : kNodeClasses) {
    if (!any_knows) break;
    const Cut best = cut(candidates, sizes, slowness(candidates, on_nodes(nodes.groups), sizes, kNodes, true),
                         price_of_rules(collective, kPricePerNodeRule));
    add_list({nodes.least, nodes.most, std::nullopt, best.ranges, true}, lists);
  }
  return lists;
}

// Adds the rules of a list but those that are there already: what passed one over passes its twin over, too.
void add_rules(Collective collective, std::string_view backend, const RuleList& list,
               std::vector<SelectionRule>& rules) {
  for (std::size_t i = 0; i < list.ranges.size(); ++i) {
    SelectionRule rule{.collective = collective,
                       .backend = std::string(backend),
                       .power_of_two = list.power_of_two,
                       .algorithm = list.ranges[i].algorithm};
    (list.of_nodes ? rule.min_nodes : rule.min_ranks) = list.least;
    if (list.most != 0) (list.of_nodes ? rule.max_nodes : rule.max_ranks) = list.most;
    if (list.of_nodes) rule.min_ranks_per_node = 2;
    // Ranges begin at nothing: those below have been taken by the rules before.
    if (i + 1 < list.ranges.size()) rule.max_bytes = list.ranges[i].most;
    if (std::find(rules.begin(), rules.end(), rule) == rules.end()) rules.push_back(std::move(rule));
  }
}

// The lists of one kind of link for all orders, the weakest first.
std::vector<RuleList> lists_of(Collective collective, const CostModel& model) {
  std::vector<RuleList> lists;
  for (const FoldOrder order : {FoldOrder::any, FoldOrder::contiguous, FoldOrder::rank_order}) {
    if (order != FoldOrder::any && !row_of(collective).reduces()) continue;
    const std::vector<RuleList> of_order = lists_of(collective, order, model);
    lists.insert(lists.end(), of_order.begin(), of_order.end());
  }
  return lists;
}

// What shared memory does without messages is faster at every size and number of ranks (docs/performance.md). What it
// does not take, as asynchronous calls on copies of GPU memory, goes on to the rules below.
std::vector<SelectionRule> rules_of(Collective collective) {
  std::vector<SelectionRule> rules;
  add_rules(collective, "shm", {1, 0, {}, {{0, {.name = "shared"}}}}, rules);
  for (const FoldOrder order : {FoldOrder::any, FoldOrder::rank_order}) {
    if (order != FoldOrder::any && !row_of(collective).reduces()) continue;
    for (const RuleList& list : lists_of_nodes(collective, order)) add_rules(collective, "", list, rules);
  }
  const std::vector<RuleList> shm = lists_of(collective, kShm);
  const std::vector<RuleList> others = lists_of(collective, kOthers);
  if (shm != others) {
    for (const RuleList& list : shm) add_rules(collective, "shm", list, rules);
  }
  for (const RuleList& list : others) add_rules(collective, "", list, rules);
  // What serves every request, should all of the rules above be passed over.
  const auto general = std::find_if(algorithms().begin(), algorithms().end(),
                                    [&](const Algorithm& algorithm) { return algorithm.collective == collective; });
  add_rules(collective, "", {1, 0, {}, {{0, {.name = std::string(general->name)}}}}, rules);
  return rules;
}

}  // namespace
}  // namespace col

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: print_selection DATE > configs/selection.json\n");
    return 2;
  }
  std::vector<col::SelectionRule> rules;
  for (int i = 0; i < col::kCollectiveCount; ++i) {
    const auto collective = static_cast<col::Collective>(i);
    if (col::row_of(collective).is_message) continue;
    const std::vector<col::SelectionRule> more = col::rules_of(collective);
    rules.insert(rules.end(), more.begin(), more.end());
  }
  const col::SelectionEvidence evidence{
      .machine = std::string(col::kMachine), .date = argv[1], .command = "build/tests/unit/group/print_selection DATE"};
  fmt::print("{}", col::selection_to_json(rules, evidence));
}

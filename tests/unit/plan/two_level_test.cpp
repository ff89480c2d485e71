// What two-level algorithms are for: the bytes between nodes, however many ranks a node has and however they are dealt.
// That the results are right is for algorithms_test.cpp.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <col/plan.hpp>
#include <col/select.hpp>

#include "cases.hpp"
#include "support/catch.hpp"

namespace col {
namespace {

constexpr std::size_t kElement = 4;
constexpr std::size_t kBytes = std::size_t{32} << 20;
// What cuts that do not come out even may add.
constexpr double kSlack = 1.05;

// The node of each rank: node by node, or dealt to the nodes in turn while they have room.
std::vector<int> in_order(const std::vector<int>& nodes) {
  std::vector<int> layout;
  for (std::size_t node = 0; node < nodes.size(); ++node)
    layout.insert(layout.end(), static_cast<std::size_t>(nodes[node]), static_cast<int>(node));
  return layout;
}
std::vector<int> in_turn(std::vector<int> room) {
  std::vector<int> layout;
  for (std::size_t node = 0; std::accumulate(room.begin(), room.end(), 0) > 0; node = (node + 1) % room.size()) {
    if (room[node] == 0) continue;
    --room[node];
    layout.push_back(static_cast<int>(node));
  }
  return layout;
}

std::vector<std::vector<int>> layouts() {
  const std::vector<std::vector<int>> sizes = {{4, 4}, {2, 2, 2, 2}, {3, 2, 1}, {1, 3, 4}, {3, 3, 2}, {2, 2, 2}};
  std::vector<std::vector<int>> all;
  for (const std::vector<int>& nodes : sizes) all.insert(all.end(), {in_order(nodes), in_turn(nodes)});
  return all;
}

PlanProblem problem_of(Collective collective, const std::vector<int>& layout) {
  const std::size_t elements = kBytes / kElement;
  PlanProblem::Spec spec{.collective = collective,
                         .size = static_cast<int>(layout.size()),
                         .count = row_of(collective).has_blocks() ? elements / layout.size() : elements,
                         .node_of_rank = layout};
  return PlanProblem(std::move(spec));
}

// The bytes that the busiest node has to send or to receive, whatever the algorithm.
double bound(Collective collective, const std::vector<int>& layout) {
  const int nodes = 1 + *std::max_element(layout.begin(), layout.end());
  std::vector<double> share(static_cast<std::size_t>(nodes), 0);  // of the blocks of a node, of all
  for (const int node : layout) share[static_cast<std::size_t>(node)] += 1.0 / static_cast<double>(layout.size());
  const double n = kBytes;
  switch (collective) {
    case Collective::allreduce:
      return 2 * n * (nodes - 1) / nodes;
    case Collective::allgather:
    case Collective::reduce_scatter:
      return n * (1 - *std::min_element(share.begin(), share.end()));  // for the smallest node, what others have
    case Collective::gather:
    case Collective::scatter:
      return n * (1 - share[static_cast<std::size_t>(layout.front())]);  // the root is rank 0
    default:
      return n;
  }
}

Simulation simulated(const Algorithm& algorithm, const PlanProblem& problem) {
  CostModel model;
  model.nic_shared = true;
  return simulate(problem, plans_of(algorithm, problem), model, kElement, kElement);
}

void check_bytes(const Algorithm& algorithm, const std::vector<int>& layout) {
  const Simulation result = simulated(algorithm, problem_of(algorithm.collective, layout));
  const double sent =
      static_cast<double>(*std::max_element(result.node_bytes_out.begin(), result.node_bytes_out.end()));
  const double received =
      static_cast<double>(*std::max_element(result.node_bytes_in.begin(), result.node_bytes_in.end()));
  INFO(fmt::format("{} {}, nodes of ranks: {}", to_string(algorithm.collective), algorithm.name,
                   fmt::join(layout, " ")));
  const double least = bound(algorithm.collective, layout);
  CHECK(sent <= kSlack * least);
  CHECK(received <= kSlack * least);
  CHECK(std::max(sent, received) >= 0.99 * least);  // the bound is one
}

}  // namespace

namespace {

// For a sum in rank order, each node has to get the sum of the nodes before it; which is the most that a node must get
// or send besides the result. Requires: nodes of neighbouring ranks.
double ordered_bound(Collective collective, const std::vector<int>& layout) {
  const auto ranks = static_cast<double>(layout.size());
  const int nodes = layout.back() + 1;
  const double n = kBytes;
  if (collective == Collective::allreduce) return nodes == 2 ? n : 2 * n;
  if (collective == Collective::reduce) return n;  // the root is rank 0, to which no sum comes
  double most = n;                                 // that the first node sends
  for (int node = 0; node < nodes; ++node) {
    const auto blocks = static_cast<double>(std::count(layout.begin(), layout.end(), node)) / ranks * n;
    if (node > 0 && node + 1 < nodes) most = std::max(most, n + blocks);
  }
  return most;
}

// Of each node: what its ranks have for others, and what others have for them.
struct Crossing {
  std::size_t out = 0, in = 0;
};
std::map<int, Crossing> crossings(const PlanProblem& problem, const std::vector<int>& layout) {
  std::map<int, Crossing> of_node;
  const PlanProblem::Spec& spec = problem.spec();
  const auto cross = [&](int from, int to, std::size_t count) {
    const int here = layout[static_cast<std::size_t>(from)], there = layout[static_cast<std::size_t>(to)];
    if (here == there) return;
    of_node[here].out += count;
    of_node[there].in += count;
  };
  for (int rank = 0; rank < problem.size(); ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    if (spec.collective == Collective::gatherv) cross(rank, spec.root, spec.counts[r]);
    if (spec.collective == Collective::scatterv) cross(spec.root, rank, spec.counts[r]);
    if (spec.collective != Collective::alltoallv) continue;
    for (int to = 0; to < problem.size(); ++to)
      cross(rank, to, spec.counts[r * layout.size() + static_cast<std::size_t>(to)]);
  }
  return of_node;
}

}  // namespace

TEST_CASE("two levels: sums in rank order take no more bytes between nodes than they must", "[plan][two_level]") {
  std::string worst;
  double most = 0;
  for (const std::vector<int>& layout : layouts()) {
    if (!std::is_sorted(layout.begin(), layout.end())) continue;
    for (const Collective collective : {Collective::allreduce, Collective::reduce, Collective::reduce_scatter}) {
      const Algorithm& algorithm = test::algorithm(collective, "two_level_chain");
      const Simulation result = simulated(algorithm, problem_of(collective, layout));
      const auto sent = *std::max_element(result.node_bytes_out.begin(), result.node_bytes_out.end());
      const auto received = *std::max_element(result.node_bytes_in.begin(), result.node_bytes_in.end());
      const double least = ordered_bound(collective, layout);
      const double ratio = static_cast<double>(std::max(sent, received)) / least;
      INFO(fmt::format("{} on {}", to_string(collective), fmt::join(layout, " ")));
      CHECK(ratio <= kSlack);
      CHECK(ratio >= 0.99);
      if (ratio <= most) continue;
      most = ratio;
      worst = fmt::format("{} on {}", to_string(collective), fmt::join(layout, " "));
    }
  }
  fmt::print("two levels, in rank order: at most {:.3f} of the least bytes ({})\n", most, worst);
}

TEST_CASE("two levels: blocks of v-forms pass between two nodes once, through leaders or straight",
          "[plan][two_level]") {
  const std::uint32_t seed = test::random_seed();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  double most = 0;
  std::size_t cases = 0;
  while (cases < 120) {
    const int size = 2 + static_cast<int>(random() % 15);
    const std::vector<int> layout = test::random_nodes(size, random);
    if (std::adjacent_find(layout.begin(), layout.end(), std::not_equal_to<>()) == layout.end()) continue;
    ++cases;
    for (const Collective collective : {Collective::gatherv, Collective::scatterv, Collective::alltoallv}) {
      PlanProblem::Spec spec = test::spec_of(collective, size, static_cast<int>(random() % static_cast<unsigned>(size)),
                                             random() % test::kBlockShapes, {}, random);
      spec.node_of_rank = layout;
      spec.parameters.segment = 1 + random() % 8;  // some blocks are longer
      const PlanProblem problem(std::move(spec));
      const Algorithm& algorithm = test::algorithm(collective, "two_level_leaders");
      const Simulation result = simulated(algorithm, problem);
      std::vector<int> seen;  // in the order of the lowest ranks
      for (const int node : layout) {
        if (std::find(seen.begin(), seen.end(), node) == seen.end()) seen.push_back(node);
      }
      INFO(test::describe(algorithm, problem.spec()));
      std::map<int, Crossing> least = crossings(problem, layout);
      for (std::size_t i = 0; i < seen.size(); ++i) {
        const Crossing& of_node = least[seen[i]];
        CHECK(result.node_bytes_out[i] == of_node.out * kElement);
        CHECK(result.node_bytes_in[i] == of_node.in * kElement);
        if (of_node.out > 0)
          most = std::max(most,
                          static_cast<double>(result.node_bytes_out[i]) / static_cast<double>(of_node.out * kElement));
      }
    }
  }
  fmt::print("two levels, v-forms: at most {:.3f} of the least bytes, {} layouts\n", most, cases);
}

TEST_CASE("two levels: long vectors take no more bytes between nodes than they must", "[plan][two_level]") {
  for (const std::vector<int>& layout : layouts()) {
    for (const Collective collective : {Collective::allreduce, Collective::allgather, Collective::reduce_scatter,
                                        Collective::reduce, Collective::broadcast})
      check_bytes(test::algorithm(collective, "two_level_rails"), layout);
    // One level is enough: no block passes a node that is not its own or the root's.
    for (const Collective collective : {Collective::gather, Collective::scatter}) {
      check_bytes(test::algorithm(collective, "linear"), layout);
      check_bytes(test::algorithm(collective, "two_level_leaders"), layout);
    }
  }
}

namespace {

// What the built-in table decides. `order`: what the call asks for at least.
Choice chosen(Collective collective, const std::vector<int>& layout, std::size_t bytes, std::string_view backend,
              FoldOrder order) {
  std::vector<int> ranks(layout.size(), 0);
  for (const int node : layout) ++ranks[static_cast<std::size_t>(node)];
  const SelectionQuery query{.collective = collective,
                             .ranks = static_cast<int>(layout.size()),
                             .nodes = 1 + *std::max_element(layout.begin(), layout.end()),
                             .ranks_per_node = *std::max_element(ranks.begin(), ranks.end()),
                             .bytes = bytes,
                             .backend = backend};
  const PlanRequest request{
      .collective = collective, .size = static_cast<int>(layout.size()), .count = 1, .node_of_rank = layout};
  const auto why_not = [&](const AlgorithmSpec& spec) {
    const Algorithm* const found = find_algorithm(collective, spec.name);
    if (found == nullptr) return std::optional<std::string>("no such algorithm");
    if (found->order < order) return std::optional<std::string>("another order");
    return found->refuse(request);
  };
  const auto choice = choose(SelectionTable::built_in(), query, why_not);
  REQUIRE(choice);
  return *choice;
}

}  // namespace

TEST_CASE("two levels: the built-in table stays on the bound between nodes", "[plan][two_level]") {
  for (const std::vector<int>& layout : layouts()) {
    for (const Collective collective :
         {Collective::allreduce, Collective::allgather, Collective::reduce_scatter, Collective::reduce,
          Collective::broadcast, Collective::gather, Collective::scatter}) {
      for (const std::string_view backend : {"gloo", "hosts", "ucx"}) {
        const Choice choice = chosen(collective, layout, kBytes, backend, FoldOrder::any);
        INFO(choice.reason);
        check_bytes(test::algorithm(collective, choice.algorithm.name), layout);
      }
    }
  }
}

TEST_CASE("two levels: the built-in table has them for v-forms, and for sums in rank order", "[plan][two_level]") {
  for (const std::vector<int>& layout : layouts()) {
    for (const Collective collective : {Collective::gatherv, Collective::scatterv, Collective::alltoallv})
      CHECK(chosen(collective, layout, 0, "hosts", FoldOrder::any).algorithm.name == "two_level_leaders");
    const bool in_order = std::is_sorted(layout.begin(), layout.end());
    for (const Collective collective : {Collective::allreduce, Collective::reduce, Collective::reduce_scatter}) {
      const Choice few = chosen(collective, layout, 64, "hosts", FoldOrder::rank_order);
      INFO(few.reason);
      CHECK(few.algorithm.name == "two_level_ordered");
      const Choice many = chosen(collective, layout, kBytes, "hosts", FoldOrder::rank_order);
      INFO(many.reason);
      CHECK((many.algorithm.name == "two_level_chain") == in_order);
    }
  }
}

TEST_CASE("two levels: with one rank on each node, and on one node, the built-in table has one level",
          "[plan][two_level]") {
  for (int i = 0; i < kCollectiveCount; ++i) {
    const auto collective = static_cast<Collective>(i);
    if (row_of(collective).is_message) continue;
    for (const int nodes : {1, 4}) {
      for (const std::size_t bytes : {std::size_t{8}, std::size_t{64} << 10, kBytes}) {
        const SelectionQuery query{.collective = collective,
                                   .ranks = 4,
                                   .nodes = nodes,
                                   .ranks_per_node = 4 / nodes,
                                   .bytes = bytes,
                                   .backend = "gloo"};
        for (const SelectionRule& rule : SelectionTable::built_in().rules()) {
          INFO(rule.text());
          CHECK_FALSE((rule.matches(query) && rule.algorithm.name.starts_with("two_level")));
        }
      }
    }
  }
}

TEST_CASE("two levels: leaders send one message where one level sends one for each rank", "[plan][two_level]") {
  const std::vector<int> layout = in_turn({4, 4});
  const auto between_nodes = [&](Collective collective, std::string_view name, std::size_t length = 1) {
    PlanProblem::Spec spec{.collective = collective, .size = 8, .count = 1, .node_of_rank = layout};
    if (collective == Collective::barrier) spec.count = 0;
    if (row_of(collective).has_counts()) spec.counts.assign(collective == Collective::alltoallv ? 64 : 8, length);
    const PlanProblem problem(std::move(spec));
    std::size_t messages = 0;
    for (int rank = 0; rank < problem.size(); ++rank) {
      const Plan plan = test::algorithm(collective, name).build(problem.request(rank));
      Round round;
      for (std::size_t r = 0; r < plan.rounds; ++r) {
        plan.round(r, round);
        for (const Step& step : round.steps()) {
          if (step.kind == Step::Kind::send &&
              layout[static_cast<std::size_t>(step.peer)] != layout[static_cast<std::size_t>(rank)])
            ++messages;
        }
      }
    }
    return messages;
  };
  CHECK(between_nodes(Collective::allreduce, "two_level_leaders") == 2);
  CHECK(between_nodes(Collective::reduce, "two_level_leaders") == 1);
  CHECK(between_nodes(Collective::broadcast, "two_level_leaders") == 1);
  CHECK(between_nodes(Collective::barrier, "two_level_leaders") == 2);
  CHECK(between_nodes(Collective::allgather, "two_level_leaders") == 2);
  CHECK(between_nodes(Collective::reduce_scatter, "two_level_leaders") == 2);
  CHECK(between_nodes(Collective::gather, "two_level_leaders") == 1);
  CHECK(between_nodes(Collective::scatter, "two_level_leaders") == 1);
  CHECK(between_nodes(Collective::allgatherv, "two_level_leaders") == 2);
  CHECK(between_nodes(Collective::alltoall, "two_level_leaders") == 2);
  CHECK(between_nodes(Collective::alltoall, "two_level") == 8);  // one for each rank
  CHECK(between_nodes(Collective::alltoall, "pairwise") == 32);
  // In rank order, though no node has neighbouring ranks.
  CHECK(between_nodes(Collective::allreduce, "two_level_ordered") == 2);
  CHECK(between_nodes(Collective::reduce, "two_level_ordered") == 1);
  CHECK(between_nodes(Collective::reduce_scatter, "two_level_ordered") == 2);
  CHECK(between_nodes(Collective::scan, "two_level_ordered") == 2);
  CHECK(between_nodes(Collective::scan, "linear") == 7);
  CHECK(between_nodes(Collective::allreduce, "one_shot") == 32);
  // Of v-forms, leaders carry short blocks, and the long ones go straight.
  for (const auto& [collective, one_level] :
       {std::pair(Collective::gatherv, 4), {Collective::scatterv, 4}, {Collective::alltoallv, 32}}) {
    CHECK(between_nodes(collective, "two_level_leaders", 100) == (collective == Collective::alltoallv ? 2 : 1));
    CHECK(between_nodes(collective, "two_level_leaders", 1'000'000) == static_cast<std::size_t>(one_level));
  }
}

TEST_CASE("two levels: what cannot be served is refused with the reason", "[plan][two_level]") {
  const PlanProblem one_node(
      {.collective = Collective::allreduce, .size = 4, .count = 1, .node_of_rank = {3, 3, 3, 3}});
  for (const std::string_view name : {"two_level_rails", "two_level_leaders"}) {
    const auto why = test::algorithm(Collective::allreduce, name).refuse(one_node.request(0));
    REQUIRE(why);
    CHECK(why->find("all ranks are on one node; use ") == 0);
  }
  const PlanProblem dealt({.collective = Collective::scan, .size = 4, .count = 1, .node_of_rank = {0, 1, 0, 1}});
  const auto why = test::algorithm(Collective::scan, "two_level_leaders").refuse(dealt.request(0));
  REQUIRE(why);
  CHECK(*why ==
        "the ranks of a node are not neighbours: rank 2 is on the node of rank 0, and rank 1 is not; use doubling");
  const auto in_order = test::algorithm(Collective::allreduce, "two_level_chain").refuse(dealt.request(0));
  REQUIRE(in_order);
  CHECK(*in_order ==
        "the ranks of a node are not neighbours: rank 2 is on the node of rank 0, and rank 1 is not; use ps_sharded");
}

}  // namespace col

// What two-level algorithms are for: the bytes between nodes, however many ranks a node has and however they are dealt.
// That the results are right is for algorithms_test.cpp.
#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
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

TEST_CASE("two levels: the built-in table stays on the bound between nodes", "[plan][two_level]") {
  for (const std::vector<int>& layout : layouts()) {
    for (const Collective collective :
         {Collective::allreduce, Collective::allgather, Collective::reduce_scatter, Collective::reduce,
          Collective::broadcast, Collective::gather, Collective::scatter}) {
      for (const std::string_view backend : {"gloo", "hosts", "ucx"}) {
        std::vector<int> ranks(layout.size(), 0);
        for (const int node : layout) ++ranks[static_cast<std::size_t>(node)];
        const SelectionQuery query{.collective = collective,
                                   .ranks = static_cast<int>(layout.size()),
                                   .nodes = 1 + *std::max_element(layout.begin(), layout.end()),
                                   .ranks_per_node = *std::max_element(ranks.begin(), ranks.end()),
                                   .bytes = kBytes,
                                   .backend = backend};
        const PlanProblem problem = problem_of(collective, layout);
        const auto choice = choose(SelectionTable::built_in(), query, [&](const AlgorithmSpec& spec) {
          const Algorithm* const found = find_algorithm(collective, spec.name);
          return found == nullptr ? std::optional<std::string>("no such algorithm") : found->refuse(problem.request(0));
        });
        REQUIRE(choice);
        INFO(choice->reason);
        check_bytes(test::algorithm(collective, choice->algorithm.name), layout);
      }
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
  const auto between_nodes = [&](Collective collective, std::string_view name) {
    PlanProblem::Spec spec{.collective = collective, .size = 8, .count = 1, .node_of_rank = layout};
    if (collective == Collective::barrier) spec.count = 0;
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
  CHECK(between_nodes(Collective::alltoall, "two_level") == 8);  // one for each rank
  CHECK(between_nodes(Collective::alltoall, "pairwise") == 32);
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
}

}  // namespace col

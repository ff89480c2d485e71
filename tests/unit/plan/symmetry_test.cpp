// Ranks of which one is simulated for all, against all of them simulated.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/plan.hpp>

#include "cases.hpp"
#include "everyday.hpp"
#include "plan/simulation/simulate.hpp"
#include "plan/simulation/symmetry.hpp"
#include "support/catch.hpp"

namespace col {
namespace {

enum class Simulated { all, some };

Simulation simulation_of(Simulated which, const PlanProblem& problem, const PlanOfRank& plans, const CostModel& model) {
  const int many = which == Simulated::all ? std::numeric_limits<int>::max() : 1;
  return plan::simulation::simulate(problem, plans, model, 4, 4, many);
}

plan::simulation::Alike alike_in(const PlanProblem& problem, const PlanOfRank& plans, const CostModel& model = {}) {
  plan::simulation::RoundReader reader(model, 4);
  std::vector<int> nodes = problem.spec().node_of_rank;
  nodes.resize(static_cast<std::size_t>(problem.size()));
  return plan::simulation::alike_ranks(nodes, plans, model, reader);
}

// How many ranks are simulated for all.
int that_differ(const PlanProblem& problem, const PlanOfRank& plans, const CostModel& model = {}) {
  const auto alike = alike_in(problem, plans, model);
  return alike.is_all ? alike.ranks : problem.size();
}

std::vector<CostModel> models_to_try() {
  std::vector<CostModel> models(4);
  models[1].nic_shared = true;
  models[2].memory_bandwidth = 2e10;
  models[3].nic_shared = true;
  models[3].memory_bandwidth = 1e9;
  models[3].copy = 1e-9;
  return models;
}

PlanProblem on_nodes(Collective collective, int nodes, int each, std::size_t block) {
  PlanProblem::Spec spec = test::everyday_spec(collective, nodes * each, block);
  for (int r = 0; r < nodes * each; ++r) spec.node_of_rank.push_back(r / each);
  return PlanProblem(spec);
}

PlanOfRank same_for_all(int size, void (*steps)(int below, int above, Round& round)) {
  return [=](int rank) {
    return Plan{.rounds = 1, .generate = [=](std::size_t, Round& round) {
                  steps((rank + size - 1) % size, (rank + 1) % size, round);
                }};
  };
}

double largest_difference(const Simulation& a, const Simulation& b) {
  REQUIRE(a.rank_seconds.size() == b.rank_seconds.size());
  double largest = std::abs(a.seconds - b.seconds);
  for (std::size_t r = 0; r < a.rank_seconds.size(); ++r)
    largest = std::max(largest, std::abs(a.rank_seconds[r] - b.rank_seconds[r]));
  return largest / a.seconds;
}

}  // namespace

TEST_CASE("symmetry: some ranks, simulated for all, take the time of all", "[plan][simulate]") {
  std::set<std::string> alike;
  for (const Algorithm& algorithm : algorithms()) {
    for (const auto& [nodes, each] : {std::pair(1, 12), {1, 16}, {4, 4}, {3, 4}, {16, 2}, {8, 8}, {16, 1}}) {
      const PlanProblem problem = on_nodes(algorithm.collective, nodes, each, 6);
      if (algorithm.refuse(problem.request(0))) continue;
      const PlanOfRank plans = plans_of(algorithm, problem);
      for (const CostModel& model : models_to_try()) {
        INFO(fmt::format("{}, {} nodes, memory {}, NIC {}", test::describe(algorithm, problem.spec()), nodes,
                         model.memory_bandwidth, model.nic_shared));
        const Simulation all = simulation_of(Simulated::all, problem, plans, model);
        const Simulation some = simulation_of(Simulated::some, problem, plans, model);
        CHECK(largest_difference(all, some) <= 1e-9);
        CHECK(some.messages == all.messages);
        CHECK(some.bytes_inter == all.bytes_inter);
        CHECK(some.bytes_intra == all.bytes_intra);
        CHECK(some.node_bytes_out == all.node_bytes_out);
        CHECK(some.node_bytes_in == all.node_bytes_in);
      }
      if (nodes == 8 && that_differ(problem, plans) == each)
        alike.insert(fmt::format("{} {}", to_string(algorithm.collective), algorithm.name));
    }
  }
  const std::set<std::string> expected{"allgather direct",
                                       "allgather neighbor",
                                       "allgather ring",
                                       "allgather two_level_rails",
                                       "allreduce ring",
                                       "allreduce ring_pipelined",
                                       "allreduce two_level_rails",
                                       "alltoall bruck",
                                       "alltoall linear",
                                       "alltoall pairwise",
                                       "barrier dissemination",
                                       "barrier two_level_leaders",
                                       "reduce_scatter ring",
                                       "reduce_scatter two_level_rails"};
  CHECK(alike == expected);  // a new algorithm may have to be added
}

TEST_CASE("symmetry: what tells ranks apart", "[plan][simulate]") {
  const Algorithm& ring = test::algorithm(Collective::allreduce, "ring");
  const auto of_ring = [&](const PlanProblem& problem, const CostModel& model = {}) {
    return that_differ(problem, plans_of(ring, problem), model);
  };
  const PlanProblem even = on_nodes(Collective::allreduce, 4, 3, 6);
  CHECK(of_ring(even) == 3);
  CHECK(of_ring(even, {.memory_bandwidth = 1e9}) == 3);
  CHECK(of_ring(even, {.nic_shared = true}) == 3);
  CHECK(of_ring(even, {.cores = 2}) == 12);  // who asks first
  PlanProblem::Spec spec = even.spec();
  spec.count -= 1;  // blocks of two lengths
  CHECK(of_ring(PlanProblem(spec)) == 12);
  spec = even.spec();
  for (int r = 0; r < 12; ++r) spec.node_of_rank[static_cast<std::size_t>(r)] = r % 4;
  CHECK(of_ring(PlanProblem(spec)) == 12);  // dealt in turn
  spec.node_of_rank = {0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3, 3};
  CHECK(of_ring(PlanProblem(spec)) == 12);
  spec.node_of_rank = {0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1};
  CHECK(of_ring(PlanProblem(spec)) == 12);
  spec.node_of_rank = {};
  CHECK(of_ring(PlanProblem(spec)) == 1);
  CHECK(of_ring(PlanProblem(spec), {.memory_bandwidth = 1e9}) == 12);  // twelve share what one would have alone
  // It adds in the order of the ranks: what a rank waits for depends on its number.
  const Algorithm& direct = test::algorithm(Collective::allreduce, "direct");
  const auto alike = alike_in(even, plans_of(direct, even));
  CHECK(alike.ranks == 3);
  CHECK(alike.rounds == 1);  // in which the same messages are sent
  CHECK_FALSE(alike.is_all);
  CHECK(alike_in(even, plans_of(direct, even), {.memory_bandwidth = 1e9}).rounds == 0);
}

TEST_CASE("symmetry: plans that do not pair are refused, by name", "[plan][simulate]") {
  const PlanProblem six({.collective = Collective::broadcast, .size = 6, .count = 100});
  const auto refusal_of = [&](const PlanOfRank& plans) {
    try {
      simulation_of(Simulated::some, six, plans, {});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto refusal = [&](void (*steps)(int below, int above, Round& round)) {
    return refusal_of(same_for_all(6, steps));
  };
  CHECK(refusal([](int below, int above, Round& round) {
          round.send(above, {Buffer::output, 0, 5});
          round.recv(below, {Buffer::output, 0, 4});
        }).find("rank 5 sends 5 elements to rank 0, which awaits 4") != std::string::npos);
  CHECK(refusal([](int below, int, Round& round) {
          round.recv(below, {Buffer::output, 0, 4});
        }).find("rank 0 waits in round 0 for rank 5, for ever") != std::string::npos);
  CHECK(refusal([](int, int above, Round& round) {
          round.send(above + 6, {Buffer::output, 0, 4});
        }).find("rank 0 sends to rank 7, and the ranks are 0 to 5") != std::string::npos);
  // Alike are only the messages of the first round.
  const PlanOfRank waits_later = [](int rank) {
    return Plan{.rounds = 2, .generate = [rank](std::size_t index, Round& round) {
                  const Slice slice{Buffer::output, 0, static_cast<std::size_t>(rank + 1)};
                  if (index == 0) {
                    round.send((rank + 1) % 6, {Buffer::input, 0, 9});
                    round.recv((rank + 5) % 6, {Buffer::output, 0, 9});
                    round.reduce(slice, slice, slice);
                  } else if (rank == 3) {
                    round.recv(2, slice);
                  }
                }};
  };
  CHECK(alike_in(six, waits_later).rounds == 1);
  CHECK(refusal_of(waits_later).find("rank 3 waits in round 1 for rank 2, for ever") != std::string::npos);
}

TEST_CASE("symmetry: any plans that are alike on every node, up to a round whose work differs", "[plan][simulate]") {
  struct Sent {
    int place, to;  // a rank of node 0, and anyone
    std::size_t count;
  };
  const std::uint32_t seed = test::random_seed();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
  int tried = 0, differ = 0, in_part = 0;
  for (int turn = 0; turn < 200; ++turn) {
    const int nodes = 2 + below(6), each = 1 + below(5), size = nodes * each;
    std::vector<std::vector<Sent>> rounds(static_cast<std::size_t>(1 + below(3)));
    for (auto& round : rounds) {
      for (int left = 1 + below(12); left > 0; --left) {
        const int place = below(each), to = below(size);
        round.push_back({place, to == place ? (to + 1) % size : to, static_cast<std::size_t>(50 * (1 + below(3)))});
      }
    }
    // In this round, if there is one, each rank adds up what has come in an order of its own.
    const auto uneven = static_cast<std::size_t>(below(6));
    const PlanOfRank plans = [&](int rank) {
      const int place = rank % each, first = rank - place;
      return Plan{.rounds = rounds.size(), .generate = [&, rank, place, first](std::size_t index, Round& round) {
                    std::vector<Slice> came;
                    for (const Sent& sent : rounds[index]) {
                      if (sent.place == place) round.send((sent.to + first) % size, {Buffer::input, 0, sent.count});
                      const int receiver = sent.to % each, from = sent.place - (sent.to - receiver);
                      if (receiver != place) continue;
                      came.push_back({Buffer::output, 200 * came.size(), sent.count});
                      round.recv((from + first + size) % size, came.back());
                    }
                    const auto begin = static_cast<std::ptrdiff_t>(index == uneven ? rank : place);
                    if (!came.empty())
                      std::rotate(came.begin(), came.begin() + begin % static_cast<std::ptrdiff_t>(came.size()),
                                  came.end());
                    for (const Slice& slice : came) round.reduce(slice, slice, {Buffer::input, 0, slice.count});
                  }};
    };
    const PlanProblem problem = on_nodes(Collective::broadcast, nodes, each, 1000);
    for (const CostModel& model : models_to_try()) {
      const auto alike = alike_in(problem, plans, model);
      if (uneven >= rounds.size()) REQUIRE((alike.is_all && alike.ranks == each));
      in_part += !alike.is_all && alike.rounds > 0 ? 1 : 0;
      const Simulation all = simulation_of(Simulated::all, problem, plans, model);
      const Simulation some = simulation_of(Simulated::some, problem, plans, model);
      CHECK(some.messages == all.messages);
      CHECK(some.node_bytes_in == all.node_bytes_in);
      ++tried;
      differ += largest_difference(all, some) > 1e-9 ? 1 : 0;
    }
  }
  CHECK(in_part > 10);
  // Who gets a port, of those who ask at the same instant: it decided in 8 of 1,600.
  CHECK(differ * 20 < tried);
}

}  // namespace col

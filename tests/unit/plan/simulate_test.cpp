// The simulator against times worked out by hand, and against itself.
#include <chrono>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/plan.hpp>

#include "cases.hpp"
#include "everyday.hpp"
#include "support/catch.hpp"

namespace col {
namespace {

using Catch::Approx;

// A round per function, for each rank.
using Rounds = std::vector<std::function<void(Round&)>>;

PlanOfRank by_hand(std::vector<Rounds> ranks) {
  return [ranks = std::move(ranks)](int rank) {
    const Rounds& rounds = ranks[static_cast<std::size_t>(rank)];
    return Plan{.rounds = rounds.size(), .generate = [rounds](std::size_t i, Round& round) { rounds[i](round); }};
  };
}

PlanProblem any_problem(int size) {
  return PlanProblem({.collective = Collective::broadcast, .size = size, .count = 1000});
}

// A message takes 1 s and 1 s per element, adding an element 1 s.
CostModel simple_model() {
  CostModel model;
  model.intra = {.alpha = 1, .beta = 0.25};
  model.inter = {.alpha = 10, .beta = 2.5};
  model.gamma = 0.25;
  return model;
}

Slice elements(std::size_t first, std::size_t count) {
  return {Buffer::output, first, count};
}

double seconds(const Algorithm& algorithm, const PlanProblem& problem, const CostModel& model) {
  return simulate(problem, plans_of(algorithm, problem), model).seconds;
}

std::string refusal(const PlanProblem& problem, const PlanOfRank& plans, const CostModel& model = simple_model()) {
  try {
    simulate(problem, plans, model);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::invalid_argument);
    return error.what();
  }
  return "";
}

TEST_CASE("simulate: a message takes alpha and beta per byte, both ways at once", "[plan][simulate]") {
  const PlanProblem problem = any_problem(2);
  const auto exchange = [](int peer) {
    return Rounds{[peer](Round& round) {
      round.send(peer, elements(0, 10));
      round.recv(peer, elements(10, 10));
    }};
  };
  const Simulation result = simulate(problem, by_hand({exchange(1), exchange(0)}), simple_model());
  CHECK(result.seconds == Approx(11));
  CHECK(result.messages == 2);
  CHECK(result.bytes_intra == 80);
  CHECK(result.bytes_inter == 0);
}

TEST_CASE("simulate: a port takes one message at a time", "[plan][simulate]") {
  const Rounds sends{[](Round& round) { round.send(0, elements(0, 4)); }};
  const Rounds receives{[](Round& round) {
    for (int peer = 1; peer < 4; ++peer) round.recv(peer, elements(static_cast<std::size_t>(peer) * 4, 4));
  }};
  const Simulation result = simulate(any_problem(4), by_hand({receives, sends, sends, sends}), simple_model());
  CHECK(result.rank_seconds[1] == Approx(5));
  CHECK(result.rank_seconds[2] == Approx(10));
  CHECK(result.rank_seconds[3] == Approx(15));
  CHECK(result.rank_seconds[0] == Approx(15));
}

TEST_CASE("simulate: a message that is not ready does not hold up those listed after it", "[plan][simulate]") {
  // Rank 1 is busy for 100 s before it receives; rank 2 is there at once.
  const Rounds root{[](Round& round) {
    round.send(1, elements(0, 4));
    round.send(2, elements(0, 4));
  }};
  const Rounds late{[](Round& round) { round.reduce(elements(0, 100), elements(0, 100), elements(100, 100)); },
                    [](Round& round) { round.recv(0, elements(0, 4)); }};
  const Rounds early{[](Round& round) { round.recv(0, elements(0, 4)); }};
  const Simulation result = simulate(any_problem(3), by_hand({root, late, early}), simple_model());
  CHECK(result.rank_seconds[2] == Approx(5));
  CHECK(result.rank_seconds[0] == Approx(105));
}

TEST_CASE("simulate: of two that wait for a port, the one that was ready first goes first", "[plan][simulate]") {
  const auto after = [](std::size_t work) {
    return Rounds{[work](Round& round) { round.reduce(elements(0, work), elements(0, work), elements(100, work)); },
                  [](Round& round) { round.send(0, elements(0, 9)); }};
  };
  const Rounds root{[](Round& round) {
    for (int peer = 1; peer < 4; ++peer) round.recv(peer, elements(static_cast<std::size_t>(peer) * 9, 9));
  }};
  const Simulation result = simulate(any_problem(4), by_hand({root, after(1), after(3), after(2)}), simple_model());
  CHECK(result.rank_seconds[1] == Approx(1 + 10));
  CHECK(result.rank_seconds[3] == Approx(1 + 20));
  CHECK(result.rank_seconds[2] == Approx(1 + 30));
}

TEST_CASE("simulate: so it does when those before it cannot go yet", "[plan][simulate]") {
  // Rank 0 sends to 4 until 100 s. Of those that wait then, ranks 1 and 6 are taken by 5 and 7 until 300 s; rank 3 has
  // been ready for longer than rank 2.
  const auto receives_after = [](std::size_t work, std::size_t count) {
    return Rounds{[work](Round& round) { round.reduce(elements(0, work), elements(0, work), elements(500, work)); },
                  [count](Round& round) { round.recv(0, elements(0, count)); }};
  };
  const auto receives_twice = [](int other) {
    return Rounds{[other](Round& round) {
      round.recv(other, elements(0, 299));
      round.recv(0, elements(300, 9));
    }};
  };
  const auto sends_to = [](int other) {
    return Rounds{[other](Round& round) { round.send(other, elements(0, 299)); }};
  };
  const Rounds root{[](Round& round) {
    round.send(4, elements(0, 99));
    for (const int peer : {1, 6, 3, 2}) round.send(peer, elements(0, 9));
  }};
  const Simulation result = simulate(any_problem(8),
                                     by_hand({root, receives_twice(5), receives_after(2, 9), receives_after(1, 9),
                                              receives_after(0, 99), sends_to(1), receives_twice(7), sends_to(6)}),
                                     simple_model());
  CHECK(result.rank_seconds[4] == Approx(100));
  CHECK(result.rank_seconds[3] == Approx(110));
  CHECK(result.rank_seconds[2] == Approx(120));
  CHECK(result.rank_seconds[1] == Approx(310));
  CHECK(result.rank_seconds[6] == Approx(320));
}

TEST_CASE("simulate: work waits for the slices it needs, and for no others", "[plan][simulate]") {
  // Segments of 9 s arrive at 10 and 20; adding one takes 8, while the other one travels.
  const Rounds sender{[](Round& round) {
    round.send(1, elements(0, 9));
    round.send(1, elements(9, 9));
  }};
  const auto receiver = [](std::size_t first, std::size_t second) {
    return Rounds{[first, second](Round& round) {
      round.recv(0, elements(0, 9));
      round.recv(0, elements(9, 9));
      round.reduce(elements(first, 8), elements(first, 8), elements(100, 8));
      round.reduce(elements(second, 8), elements(second, 8), elements(100, 8));
    }};
  };
  CHECK(simulate(any_problem(2), by_hand({sender, receiver(0, 9)}), simple_model()).seconds == Approx(28));
  // In the other order both wait for the second segment; a step that needs both does, too.
  CHECK(simulate(any_problem(2), by_hand({sender, receiver(9, 0)}), simple_model()).seconds == Approx(36));
  CHECK(simulate(any_problem(2), by_hand({sender, receiver(5, 0)}), simple_model()).seconds == Approx(36));
  // Nothing of it arrives: it is done before the last message is there.
  CHECK(simulate(any_problem(2), by_hand({sender, receiver(50, 60)}), simple_model()).seconds == Approx(20));
}

TEST_CASE("simulate: elements of the wide buffer have their own size", "[plan][simulate]") {
  const Rounds sender{[](Round& round) { round.send(1, {Buffer::wide, 0, 10}); }};
  const Rounds receiver{[](Round& round) { round.recv(0, {Buffer::wide, 0, 10}); }};
  const PlanOfRank plans = by_hand({sender, receiver});
  CHECK(simulate(any_problem(2), plans, simple_model(), 2, 4).bytes_intra == 40);
  CHECK(simulate(any_problem(2), plans, simple_model(), 2, 4).seconds == Approx(11));
  CHECK(simulate(any_problem(2), plans, simple_model(), 4, 8).seconds == Approx(21));
}

TEST_CASE("simulate: messages between nodes take the other link", "[plan][simulate]") {
  const Algorithm& bde = test::algorithm(Collective::allreduce, "bde");
  const PlanProblem::Spec flat{.collective = Collective::allreduce, .size = 8, .count = 10};
  PlanProblem::Spec two_nodes = flat;
  two_nodes.node_of_rank = {7, 7, 7, 7, 2, 2, 2, 2};
  const CostModel model = simple_model();
  CHECK(seconds(bde, PlanProblem(flat), model) == Approx(3 * (11 + 10)));
  const PlanProblem problem(two_nodes);
  const Simulation result = simulate(problem, plans_of(bde, problem), model);
  CHECK(result.seconds == Approx(2 * (11 + 10) + (110 + 10)));
  CHECK(result.bytes_inter == 8 * 40);
  CHECK(result.node_bytes_out == std::vector<std::size_t>{4 * 40, 4 * 40});
  CHECK(result.node_bytes_in == result.node_bytes_out);
  CHECK(result.bytes_intra == 16 * 40);
  // Ranks dealt out by turns: the first exchange is between nodes, and no cheaper.
  two_nodes.node_of_rank = {0, 1, 0, 1, 0, 1, 0, 1};
  CHECK(seconds(bde, PlanProblem(two_nodes), model) == Approx(2 * (11 + 10) + (110 + 10)));
}

TEST_CASE("simulate: a ring crosses between two nodes once if its ranks are in order", "[plan][simulate]") {
  const Algorithm& ring = test::algorithm(Collective::allreduce, "ring");
  PlanProblem::Spec spec{.collective = Collective::allreduce, .size = 8, .count = 8};
  spec.node_of_rank = {0, 0, 0, 0, 1, 1, 1, 1};
  const PlanProblem in_order(spec);
  spec.node_of_rank = {0, 1, 0, 1, 0, 1, 0, 1};
  const PlanProblem by_turns(spec);
  const Simulation near = simulate(in_order, plans_of(ring, in_order), simple_model());
  const Simulation far = simulate(by_turns, plans_of(ring, by_turns), simple_model());
  CHECK(near.bytes_inter == 2 * 14 * 4);
  CHECK(far.bytes_intra == 0);
  // The slow links set the pace either way: 14 messages of 10 + 10 s.
  CHECK(near.seconds >= 14 * 20);
  CHECK(near.seconds < 14 * 20 + 7 * 1.01 + 14 * 2);
  // With one port to the network for all ranks of a node, by turns means four at a time through it.
  CostModel shared = simple_model();
  shared.nic_shared = true;
  CHECK(seconds(ring, in_order, shared) == Approx(near.seconds));
  CHECK(seconds(ring, by_turns, shared) > 3.5 * far.seconds);
}

TEST_CASE("simulate: eight ranks on two cores add four times as long", "[plan][simulate]") {
  const Rounds adds{[](Round& round) { round.reduce(elements(0, 10), elements(0, 10), elements(10, 10)); }};
  const PlanOfRank plans = by_hand(std::vector<Rounds>(8, adds));
  CostModel model = simple_model();
  model.cores = 8;
  CHECK(simulate(any_problem(8), plans, model).seconds == Approx(10));
  model.cores = 2;
  CHECK(simulate(any_problem(8), plans, model).seconds == Approx(40));
  // Cores are a node's own: on two nodes, four ranks share two.
  const PlanProblem two_nodes(
      {.collective = Collective::broadcast, .size = 8, .count = 1000, .node_of_rank = {0, 0, 0, 0, 1, 1, 1, 1}});
  CHECK(simulate(two_nodes, plans, model).seconds == Approx(20));
}

TEST_CASE("simulate: a core goes to whoever asked first", "[plan][simulate]") {
  const auto adds = [](std::size_t count) {
    return Rounds{
        [count](Round& round) { round.reduce(elements(0, count), elements(0, count), elements(100, count)); }};
  };
  CostModel model = simple_model();
  model.cores = 1;
  const Simulation result = simulate(any_problem(3), by_hand({adds(10), adds(5), adds(7)}), model);
  CHECK(result.rank_seconds[0] == Approx(10));
  CHECK(result.rank_seconds[1] == Approx(15));
  CHECK(result.rank_seconds[2] == Approx(22));
}

TEST_CASE("simulate: an allreduce suffers from too few cores by as much as it adds", "[plan][simulate]") {
  const Algorithm& bde = test::algorithm(Collective::allreduce, "bde");
  const PlanProblem problem({.collective = Collective::allreduce, .size = 8, .count = 10});
  CostModel model = simple_model();
  model.cores = 8;
  CHECK(seconds(bde, problem, model) == Approx(3 * (11 + 10)));
  // Three times eight additions on two cores; some ranks may exchange while others add.
  model.cores = 2;
  CHECK(seconds(bde, problem, model) >= 11 + 3 * 40);
  CHECK(seconds(bde, problem, model) <= 3 * (11 + 40));
}

TEST_CASE("simulate: the processor's share of messages waits for a core", "[plan][simulate]") {
  const Algorithm& dissemination = test::algorithm(Collective::barrier, "dissemination");
  const PlanProblem problem({.collective = Collective::barrier, .size = 8});
  CostModel model;
  model.intra = {.alpha = 10, .beta = 0};
  model.cpu_per_message = 4;
  CHECK(seconds(dissemination, problem, model) == Approx(30));  // no limit to cores
  model.cores = 16;
  CHECK(seconds(dissemination, problem, model) == Approx(30));
  // 16 ends of 4 s per round on one core, and the last message's 6 s that need none.
  model.cores = 1;
  CHECK(seconds(dissemination, problem, model) >= 3 * 64);
  CHECK(seconds(dissemination, problem, model) <= 3 * (64 + 6));
}

TEST_CASE("simulate: all who use a node's memory share its bandwidth", "[plan][simulate]") {
  const Algorithm& bde = test::algorithm(Collective::allreduce, "bde");
  const PlanProblem problem({.collective = Collective::allreduce, .size = 8, .count = 10});
  CostModel model = simple_model();
  model.memory_bandwidth = 8 * 4;  // eight messages, or additions, at their full speed
  // The result is converted at last: at no cost of its own, but through the memory.
  CHECK(seconds(bde, problem, model) == Approx(3 * (11 + 10) + 10));
  model.memory_bandwidth = 4;
  CHECK(seconds(bde, problem, model) == Approx(3 * (80 + 80) + 80));
  // What goes to another node does not pass through it.
  PlanProblem::Spec two_nodes = problem.spec();
  two_nodes.node_of_rank = {0, 0, 0, 0, 1, 1, 1, 1};
  CHECK(seconds(bde, PlanProblem(two_nodes), model) == Approx(2 * (40 + 40) + (110 + 40) + 40));
}

TEST_CASE("simulate: a latecomer slows down who uses the memory already", "[plan][simulate]") {
  const auto copies = [](std::size_t before, std::size_t count) {
    return Rounds{
        [before](Round& round) { round.reduce(elements(0, before), elements(0, before), elements(500, before)); },
        [count](Round& round) { round.copy(elements(0, count), elements(100, count)); }};
  };
  CostModel model = simple_model();
  model.memory_bandwidth = 4;
  const Simulation result = simulate(any_problem(2), by_hand({copies(0, 10), copies(5, 15)}), model);
  // Rank 1 adds 20 bytes first, at half the bandwidth: 10 s, in which rank 0 copies 20 of its 40. Then rank 0 has 20
  // left and rank 1 has 60: 10 s together, and 40 bytes alone.
  CHECK(result.rank_seconds[0] == Approx(20));
  CHECK(result.rank_seconds[1] == Approx(30));
}

TEST_CASE("simulate: a resource that is plentiful changes nothing", "[plan][simulate]") {
  CostModel plain;
  plain.copy = 5e-11;
  CostModel plentiful = plain;
  plentiful.cores = 1 << 20;
  plentiful.cpu_per_message = plain.intra.alpha / 2;
  plentiful.memory_bandwidth = 1e18;
  for (const Algorithm& algorithm : algorithms()) {
    for (const int size : {1, 2, 3, 5, 8, 12}) {
      const auto problem = test::everyday_problem(algorithm, size, 3000);
      if (!problem) continue;
      INFO(test::describe(algorithm, problem->spec()));
      const Simulation a = simulate(*problem, plans_of(algorithm, *problem), plain);
      const Simulation b = simulate(*problem, plans_of(algorithm, *problem), plentiful);
      // Where ranks compete for ports, who is first at the same instant may differ.
      const bool competes = algorithm.name == "direct" && algorithm.collective == Collective::allreduce;
      CHECK(a.seconds == Approx(b.seconds).epsilon(competes ? 0.1 : 1e-6));
      CHECK(a.messages == b.messages);
      CHECK(a.bytes_intra == b.bytes_intra);
    }
  }
}

TEST_CASE("simulate: every message is simulated, the same way each time", "[plan][simulate]") {
  for (const Algorithm& algorithm : algorithms()) {
    for (const int size : {1, 2, 3, 7, 8, 16}) {
      const auto problem = test::everyday_problem(algorithm, size, 5);
      if (!problem) continue;
      INFO(test::describe(algorithm, problem->spec()));
      const PlanOfRank plans = plans_of(algorithm, *problem);
      const Verdict verdict = verify(*problem, plans);
      const Simulation result = simulate(*problem, plans, {});
      CHECK(result.messages == verdict.messages);
      CHECK(result.bytes_intra == verdict.elements_sent * 4);
      CHECK(result.seconds == *std::max_element(result.rank_seconds.begin(), result.rank_seconds.end()));
      CHECK(result.rank_seconds == simulate(*problem, plans, {}).rank_seconds);
    }
  }
}

TEST_CASE("simulate: a ring of 1,000 ranks, two million messages, is a matter of seconds", "[plan][simulate]") {
  const Algorithm& ring = test::algorithm(Collective::allreduce, "ring");
  const PlanProblem problem({.collective = Collective::allreduce, .size = 1024, .count = 1024 * 100});
  const auto begin = std::chrono::steady_clock::now();
  const Simulation result = simulate(problem, plans_of(ring, problem), {});
  const auto took = std::chrono::steady_clock::now() - begin;
  CHECK(result.messages == 2 * 1023 * 1024);
  CHECK(result.seconds == Approx(*closed_form_seconds(ring, 1024, 1024 * 100 * 4, {})).epsilon(0.001));
  // Half a second where it is optimised and alone; sanitizers and neighbours take their time.
  CHECK(took < std::chrono::seconds(90));
}

TEST_CASE("simulate: a thousand messages that wait for each other's ports take no thousandfold time",
          "[plan][simulate]") {
  struct Case {
    int size, ranks_per_node;
    bool nic_shared;
  };
  // Uneven blocks: no two ranks are in step for long. And nodes whose ranks wait for one port together.
  const auto [size, ranks_per_node, nic_shared] = GENERATE(Case{400, 400, false}, Case{512, 8, true});
  std::vector<int> node_of_rank;
  for (int rank = 0; rank < size; ++rank) node_of_rank.push_back(rank / ranks_per_node);
  const Algorithm& direct = test::algorithm(Collective::allreduce, "direct");
  const PlanProblem problem(
      {.collective = Collective::allreduce, .size = size, .count = 40007, .node_of_rank = node_of_rank});
  const auto begin = std::chrono::steady_clock::now();
  const auto messages = static_cast<std::size_t>(2 * size * (size - 1));
  CHECK(simulate(problem, plans_of(direct, problem), {.nic_shared = nic_shared}).messages == messages);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(90));
}

TEST_CASE("simulate: plans that do not pair are refused, by name", "[plan][simulate]") {
  const Rounds nothing;
  const Rounds receives{[](Round& round) { round.recv(1, elements(0, 4)); }};
  const Rounds sends_five{[](Round& round) { round.send(0, elements(0, 5)); }};
  const Rounds sends_away{[](Round& round) { round.send(2, elements(0, 5)); }};
  const PlanProblem two = any_problem(2);
  using Catch::Matchers::Matches;
  CHECK_THAT(refusal(two, by_hand({receives, nothing})), Matches(".*rank 0 waits in round 0 for rank 1.*verify.*"));
  CHECK_THAT(refusal(two, by_hand({receives, sends_five})),
             Matches(".*rank 1 sends 5 elements to rank 0, which awaits 4.*"));
  CHECK_THAT(refusal(two, by_hand({nothing, sends_away})), Matches(".*rank 1 sends to rank 2.*0 to 1.*"));
  // Both receive first, and send after.
  const auto waits = [](int peer) {
    return Rounds{[peer](Round& round) { round.recv(peer, elements(0, 4)); },
                  [peer](Round& round) { round.send(peer, elements(0, 4)); }};
  };
  CHECK_THAT(refusal(two, by_hand({waits(1), waits(0)})), Matches(".*rank 0 waits in round 0 for rank 1.*"));
}

TEST_CASE("simulate: a cost that is no number of seconds is refused", "[plan][simulate]") {
  const PlanOfRank nothing = by_hand({{}});
  for (double CostModel::*member :
       {&CostModel::gamma, &CostModel::copy, &CostModel::cpu_per_message, &CostModel::memory_bandwidth}) {
    for (const double value :
         {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      CostModel model;
      model.*member = value;
      CHECK_FALSE(refusal(any_problem(1), nothing, model).empty());
    }
  }
  CostModel model;
  model.inter.beta = -1;
  CHECK_THAT(refusal(any_problem(1), nothing, model), Catch::Matchers::Matches(".*inter.beta.*-1.*"));
  CHECK(refusal(any_problem(1), nothing, {}).empty());
}

}  // namespace
}  // namespace col

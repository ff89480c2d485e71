// Prints what the plans of every algorithm are, a line for each problem: compare_plans.py compares those of two builds.
//
//   up to 9 ranks    all counts x modes x roots x parameters x layouts of nodes
//   10 to 64         counts, modes, roots, parameters and layouts go round, so that one case of each follows another
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/plan.hpp>

#include "cases.hpp"

namespace col {
namespace {

using Hash = std::uint64_t;

Hash mixed(Hash a, Hash b) {
  Hash x = a * 0x9e3779b97f4a7c15u + b + 0x7f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

Hash hash_of(const Slice& slice) {
  return mixed(mixed(static_cast<Hash>(slice.buffer), slice.offset), slice.count);
}

// Of all steps of all ranks, as they are.
Hash hash_of_steps(const PlanProblem& problem, const PlanOfRank& plans) {
  Hash hash = 0;
  Round round;
  for (int rank = 0; rank < problem.size(); ++rank) {
    const Plan plan = plans(rank);
    hash = mixed(hash, plan.rounds);
    for (std::size_t i = 0; i < plan.rounds; ++i) {
      plan.round(i, round);
      hash = mixed(hash, round.steps().size());
      for (const Step& step : round.steps()) {
        hash = mixed(hash, mixed(static_cast<Hash>(step.kind), static_cast<Hash>(step.peer + 1)));
        for (const Slice& slice : {step.to, step.left, step.right}) hash = mixed(hash, hash_of(slice));
      }
    }
  }
  return hash;
}

// Elements of scratch of the rank that has most.
std::size_t most_memory(const PlanProblem& problem, const PlanOfRank& plans) {
  std::size_t most = 0;
  for (int rank = 0; rank < problem.size(); ++rank) {
    const Plan plan = plans(rank);
    most = std::max(most, plan.scratch + plan.wide);
  }
  return most;
}

// Runs plans on expressions: equal ones are equal bits, for every operator and type.
class Expressions {
 public:
  Expressions(const PlanProblem& problem, const PlanOfRank& plans) : problem_(problem) {
    for (int rank = 0; rank < problem.size(); ++rank) ranks_.push_back(rank_of(rank, plans(rank)));
  }

  Hash run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < problem_.size(); ++rank) {
        while (advance(rank)) moved = true;
      }
    }
    Hash hash = 0;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const Slice output{Buffer::output, 0, problem_.output_count(static_cast<int>(r))};
      for (std::size_t i = 0; i < output.count; ++i) hash = mixed(hash, at(ranks_[r], output, i));
    }
    return hash;
  }

 private:
  struct Rank {
    Plan plan;
    std::vector<Hash> memory[4] = {};
    std::size_t place[4] = {0, 1, 2, 3}, base[4] = {};
    std::size_t next = 0;
    bool is_open = false;
    Round round = {};
  };

  Rank rank_of(int number, Plan plan) const {
    const PlanRequest request = problem_.request(number);
    const CollectiveRow& row = row_of(request.collective);
    Rank rank{.plan = std::move(plan)};
    rank.memory[0].resize(problem_.input_count(number));
    rank.memory[1].resize(problem_.output_count(number));
    rank.memory[2].resize(rank.plan.scratch);
    rank.memory[3].resize(rank.plan.wide);
    const bool is_root = number == request.root;
    if (request.in_place && row.has_in_place() && row.has_input(is_root) && row.has_output(is_root)) {
      const auto own = static_cast<std::size_t>(number);
      const auto offset = [&](std::span<const std::size_t> displacements) {
        return displacements.empty() ? own * request.count : displacements[own];
      };
      if (row.out == Extent::block && row.in == Extent::blocks) {
        rank.place[1] = 0;
        rank.base[1] = offset(request.in_displacements);
      } else {
        rank.place[0] = 1;
        if (row.in == Extent::block && row.out == Extent::blocks) rank.base[0] = offset(request.out_displacements);
      }
    }
    const auto fill = [&](Buffer buffer, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) at(rank, {buffer, 0, count}, i) = mixed(static_cast<Hash>(number) + 1, i);
    };
    if (!row.has_input(true) && is_root) fill(Buffer::output, problem_.output_count(number));
    fill(Buffer::input, problem_.input_count(number));
    return rank;
  }

  static Hash& at(Rank& rank, const Slice& slice, std::size_t i) {
    const auto buffer = static_cast<std::size_t>(slice.buffer);
    return rank.memory[rank.place[buffer]][rank.base[buffer] + slice.offset + i];
  }

  bool advance(int number) {
    Rank& rank = ranks_[static_cast<std::size_t>(number)];
    if (!rank.is_open) {
      if (rank.next == rank.plan.rounds) return false;
      rank.plan.round(rank.next++, rank.round);
      rank.is_open = true;
      for (const Step& step : rank.round.steps()) {
        if (step.kind != Step::Kind::send) continue;
        std::vector<Hash> values;
        for (std::size_t i = 0; i < step.left.count; ++i) values.push_back(at(rank, step.left, i));
        lines_[{number, step.peer}].push_back(std::move(values));
      }
    }
    std::map<int, std::size_t> needed;
    for (const Step& step : rank.round.steps()) needed[step.peer] += step.kind == Step::Kind::recv;
    for (const auto& [peer, count] : needed) {
      if (count > 0 && lines_[{peer, number}].size() < count) return false;
    }
    for (const Step& step : rank.round.steps()) {
      if (step.kind != Step::Kind::recv) continue;
      auto& line = lines_[{step.peer, number}];
      for (std::size_t i = 0; i < step.to.count; ++i) at(rank, step.to, i) = line.front()[i];
      line.pop_front();
    }
    for (const Step& step : rank.round.steps()) {
      for (std::size_t i = 0; !step.is_message() && i < step.to.count; ++i) {
        Hash value = at(rank, step.left, i);
        if (step.kind == Step::Kind::reduce) value = mixed(value, at(rank, step.right, i));
        if (step.kind == Step::Kind::convert) value = mixed(value, 0);
        at(rank, step.to, i) = value;
      }
    }
    rank.is_open = false;
    return true;
  }

  const PlanProblem& problem_;
  std::vector<Rank> ranks_;
  std::map<std::pair<int, int>, std::deque<std::vector<Hash>>> lines_;  // what is on its way between two ranks
};

// Latency counts; bytes count, and nodes have one port each; copies count.
std::vector<CostModel> models() {
  std::vector<CostModel> models(3);
  models[1] = {.intra = {1e-7, 1e-8}, .inter = {1e-6, 1e-7}, .nic_shared = true};
  models[2] = {.intra = {1e-7, 1e-8}, .inter = {1e-6, 1e-7}, .gamma = 2e-9, .copy = 1e-9};
  return models;
}

std::vector<std::vector<int>> layouts(const Algorithm& algorithm, int size) {
  if (!test::needs_nodes(algorithm)) return {{}};
  std::vector<std::vector<int>> all(7);
  std::mt19937 random(static_cast<unsigned>(size));
  for (int rank = 0; rank < size; ++rank) {
    all[0].push_back(rank / 2);
    all[1].push_back(rank / 4);
    all[2].push_back(rank % 2);
    all[3].push_back(rank % 3);
    all[4].push_back(static_cast<int>(std::sqrt(rank)));
    all[5].push_back(rank);
    all[6].push_back(static_cast<int>(random() % 5));
  }
  return all;
}

std::vector<int> roots(Collective collective, int size) {
  std::vector<int> all = {0};
  for (int root = 1; row_of(collective).rooted && root < size; ++root) {
    if (size <= 9 || root == 1 || root == size / 2 || root == size - 1) all.push_back(root);
  }
  return all;
}

std::vector<std::size_t> counts(Collective collective, int size) {
  if (!row_of(collective).has_data()) return {0};
  return row_of(collective).has_counts() ? std::vector<std::size_t>{0, 1, 2, 3} : test::counts_for(size);
}

void print(const Algorithm& algorithm, const PlanProblem::Spec& spec) {
  const PlanProblem problem(spec);
  if (const auto refusal = algorithm.refuse(problem.request(0))) {
    fmt::print("{}\trefused: {}\n", test::describe(algorithm, spec), *refusal);
    return;
  }
  const PlanOfRank plans = plans_of(algorithm, problem);
  const Verdict verdict = verify(problem, plans);
  const Hash bits = spec.size <= 9 ? Expressions(problem, plans).run() : 0;
  std::string seconds;
  for (const CostModel& model : models())
    seconds += fmt::format(" {:.9g}", simulate(problem, plans, model, 4, spec.widens ? 8 : 4).seconds);
  fmt::print("{}\tgood={} order={} messages={} elements={} most={} bits={:x}\trounds={} memory={} steps={:x}\t{}\n",
             test::describe(algorithm, spec), verdict.good, to_string(verdict.order), verdict.messages,
             verdict.elements_sent, verdict.most_elements_sent, bits, verdict.rounds, most_memory(problem, plans),
             hash_of_steps(problem, plans), seconds.substr(1));
}

void print_all(const Algorithm& algorithm, int largest) {
  std::mt19937 random(1);
  const std::vector<test::Mode> modes = test::modes_of(algorithm.collective);
  const std::vector<PlanParameters> parameters = test::parameters_of(algorithm);
  std::size_t turn = 0, mode = 0;
  for (int size = 1; size <= largest; ++size) {
    const auto all = layouts(algorithm, size);
    for (const int root : roots(algorithm.collective, size)) {
      for (const std::size_t count : counts(algorithm.collective, size)) {
        const std::size_t cases = modes.size() * parameters.size() * all.size();
        for (std::size_t i = 0; i < (size <= 9 ? cases : 1); ++i) {
          const std::size_t n = size <= 9 ? i : turn++;
          mode = n % modes.size();
          PlanProblem::Spec spec = test::spec_of(algorithm.collective, size, root, count, modes[mode], random);
          spec.parameters = parameters[n / modes.size() % parameters.size()];
          spec.node_of_rank = all[n / modes.size() / parameters.size() % all.size()];
          if (size > 9) spec.node_of_rank = all[n % all.size()];
          print(algorithm, spec);
        }
      }
    }
  }
}

}  // namespace
}  // namespace col

// print_plans [LARGEST [COLLECTIVE]]
int main(int argc, char** argv) {
  const int largest = argc > 1 ? std::atoi(argv[1]) : 64;
  for (const col::Algorithm& algorithm : col::algorithms()) {
    if (argc > 2 && to_string(algorithm.collective) != argv[2]) continue;
    col::print_all(algorithm, largest);
  }
}

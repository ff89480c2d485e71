// The steps that programs have got with the draws of version 2.
#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "simulation/program.hpp"

namespace col::test {
namespace {

using Kind = Step::Kind;

constexpr std::array kBlocks = {Collective::allgatherv, Collective::gatherv, Collective::scatterv,
                                Collective::reduce_scatterv, Collective::alltoallv};
constexpr std::array kOfObjects = {Collective::broadcast, Collective::allgather, Collective::gather,
                                   Collective::scatter, Collective::send};
constexpr std::array kKinds = {Kind::collective, Kind::collective, Kind::any,   Kind::own,
                               Kind::batch,      Kind::object,     Kind::scope, Kind::again};

void shuffle(std::vector<int>& numbers, Random& random) {
  for (std::size_t i = numbers.size(); i > 1; --i) std::swap(numbers[i - 1], numbers[random.below(i)]);
}

bool makes_group(const Step& step) {
  return step.kind == Kind::split || step.kind == Kind::dup || step.kind == Kind::subgroup;
}

Step choose_step(Random& random, bool has_turns) {
  Step step;
  step.kind = has_turns && random.one_in(3) ? Kind::beside : kKinds[random.below(kKinds.size())];
  step.root = random.from_to(0, 7);
  step.count = random.one_in(8) ? 0 : 1 + random.skewed_below(2000);
  step.pause_us = random.one_in(4) ? random.from_to(1, 3000) : 0;
  switch (step.kind) {
    case Kind::collective:
      step.collective = kBlocks[random.below(kBlocks.size())];
      step.is_started = random.one_in(3);
      break;
    case Kind::object:
      step.collective = kOfObjects[random.below(kOfObjects.size())];
      break;
    case Kind::scope:
      step.collective = random.one_in(2) ? Collective::allreduce : Collective::broadcast;
      break;
    case Kind::again:
      step.collective = random.one_in(2) ? Collective::broadcast : Collective::scatter;
      step.is_native = !random.one_in(4);
      step.is_started = step.collective == Collective::broadcast && random.one_in(2);
      break;
    default:
      break;
  }
  return step;
}

// A split in which some ranks join nothing and the others have another order; or a list of ranks.
Step choose_making(Random& random, int ranks) {
  Step step;
  step.kind = random.one_in(2) ? Kind::split : Kind::subgroup;
  std::vector<int> order(static_cast<std::size_t>(ranks));
  std::iota(order.begin(), order.end(), 0);
  shuffle(order, random);
  if (step.kind == Kind::subgroup) {
    order.resize(static_cast<std::size_t>(random.from_to(1, ranks)));
  } else {
    for (int rank = 0; rank < ranks; ++rank) step.colors.push_back(random.from_to(-1, 1));
  }
  step.keys = std::move(order);
  return step;
}

}  // namespace

void widen(Program& program, Random& random, int ranks, bool has_turns) {
  auto& steps = program.steps;
  const auto insert = [&](int at, Step step) {
    if (at < program.world_only) ++program.world_only;
    steps.insert(steps.begin() + at, std::move(step));
  };
  // The two steps before those of the world alone end what goes on in other groups. Groups have the numbers in which
  // they are made.
  int last_made = 0;
  for (int i = 0; i < static_cast<int>(steps.size()); ++i) {
    if (makes_group(steps[static_cast<std::size_t>(i)])) last_made = i + 1;
  }
  for (int i = random.from_to(0, 2); i > 0; --i) {
    Step step = choose_making(random, ranks);  // before the place: arguments of a call have no order
    last_made = random.from_to(last_made, program.world_only - 2);
    insert(last_made++, std::move(step));
    ++program.groups;
  }
  for (int i = random.from_to(2, 8); i > 0; --i) {
    Step step = choose_step(random, has_turns);
    const int at = random.from_to(0, program.world_only - 2);
    int groups = 1;
    for (int before = 0; before < at; ++before) groups += makes_group(steps[static_cast<std::size_t>(before)]) ? 1 : 0;
    step.group = random.from_to(0, groups - 1);
    insert(at, std::move(step));
  }
  if (random.one_in(2)) insert(program.world_only, choose_step(random, has_turns));
  for (Step& step : steps)
    step.is_dropped = step.kind == Kind::collective && step.is_started && !step.continues && random.one_in(12);
}

}  // namespace col::test

// Faults to plant into good plans.
#pragma once

#include <cstddef>
#include <functional>
#include <random>
#include <string_view>
#include <vector>

#include <col/plan.hpp>

namespace col::test {

// What a fault is planted into.
struct Victim {
  const PlanProblem& problem;
  FoldOrder order;   // declared by the algorithm
  int rank;          // whose round it is
  const Plan& plan;  // of that rank
  std::mt19937& random;
};

// Elements of scratch beyond those the plan asks for: nobody writes them.
inline constexpr std::size_t kSpareScratch = 4096;

struct Mutation {
  std::string_view name;
  bool (*suits)(const Step& step);  // whether the step is of the kind that the fault is for
  // Changes the round at step `at`, which suits. False where this fault cannot be planted, or would change nothing. A
  // kind says in a comment why no good plan can survive it.
  bool (*plant)(const Victim& victim, std::vector<Step>& steps, std::size_t at);
};
std::vector<Mutation> mutations();

// `plans`, with `round` of `rank` replaced by `steps`, and some spare scratch.
PlanOfRank with_round(PlanOfRank plans, int rank, std::size_t round, std::vector<Step> steps);

}  // namespace col::test

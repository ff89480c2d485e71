// The problems that algorithms are tried on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <col/plan.hpp>

namespace col::test {

// In place or not, and which types partial results and inputs have.
struct Mode {
  bool in_place = false, widens = false, wide_input = false;
};
// All that make sense for a collective.
std::vector<Mode> modes_of(Collective collective);

// 0, 1, p-1, p, p+1 and a prime, without repetition.
std::vector<std::size_t> counts_for(int size);

// The counts of a v-form: nothing at all, all at one rank, a ramp, random with many zeros. Symmetric for an alltoallv
// in place, where a rank receives as much as it sends.
inline constexpr int kBlockShapes = 4;
std::vector<std::size_t> blocks_for(Collective collective, int size, int shape, bool symmetric, std::mt19937& random);

// The problem of one of these. `what`: a count, or in a v-form the shape of the blocks.
PlanProblem::Spec spec_of(Collective collective, int size, int root, std::size_t what, const Mode& mode,
                          std::mt19937& random);

// The nodes of ranks: all on one, or some neighbours on each, or dealt to nodes in turn, or anywhere. Empty: all on
// one.
std::vector<int> random_nodes(int size, std::mt19937& random);

// Whether it serves only groups on several nodes.
bool needs_nodes(const Algorithm& algorithm);

// The built-in algorithm of that name, which exists.
const Algorithm& algorithm(Collective collective, std::string_view name);

// What an algorithm can be told, defaults first; just them when it takes no parameters.
std::vector<PlanParameters> parameters_of(const Algorithm& algorithm);

// "allreduce ring, 5 ranks, count 3, in place, widens"
std::string describe(const Algorithm& algorithm, const PlanProblem::Spec& spec);

std::uint32_t random_seed();

}  // namespace col::test

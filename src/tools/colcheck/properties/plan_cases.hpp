// Cases about plans themselves, which no rank has to execute: an algorithm, and a range of group sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <col/plan.hpp>

#include "colcheck/property.hpp"

namespace col::colcheck {

// Case::variant of such a case: two numbers in one.
struct RankRange {
  int first = 1, last = 1;
  std::uint64_t variant() const { return static_cast<std::uint64_t>(first) * 1000 + static_cast<std::uint64_t>(last); }
  static RankRange of(std::uint64_t variant) {
    return {static_cast<int>(variant / 1000), static_cast<int>(variant % 1000)};
  }
};

// Every built-in algorithm that the selection allows, with each of the ranges.
void add_plan_cases(const Selection& selection, std::string_view property, std::span<const RankRange> ranges,
                    std::vector<Case>& cases);

// The algorithm of a case, and its parameters. A segment's bytes count as elements.
struct PlanSubject {
  const Algorithm* algorithm = nullptr;
  PlanParameters parameters = {};

  // Throws std::invalid_argument if there is no such algorithm.
  static PlanSubject of(const Case& c);
};

// The counts of a v-form in the form for PlanProblem: all equal to `block`, or drawn around it with many zeros.
// Symmetric: an alltoallv in which a rank receives as much as it sends.
std::vector<std::size_t> even_blocks(Collective collective, int size, std::size_t block);
std::vector<std::size_t> uneven_blocks(Collective collective, int size, std::size_t block, bool symmetric,
                                       std::mt19937_64& random);

// "5 ranks, root 2, count 7, in place, widens"
std::string describe(const PlanProblem::Spec& spec);

}  // namespace col::colcheck

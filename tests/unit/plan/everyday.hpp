// One ordinary problem for any algorithm: what the tests of cost, simulator and drawings share.
#pragma once

#include <cstddef>
#include <optional>

#include <col/plan.hpp>

#include "cases.hpp"

namespace col::test {

// Whether `bytes` of a closed formula is one vector, rather than all blocks together.
inline bool has_whole_vectors(Collective collective) {
  return row_of(collective).in == Extent::vector || row_of(collective).out == Extent::vector;
}

// `block` elements per rank, one vector or all blocks together having block * size; in v-forms, rank r's block is
// block + r. Nothing in a barrier.
inline PlanProblem::Spec everyday_spec(Collective collective, int size, std::size_t block,
                                       const PlanParameters& parameters = {}) {
  PlanProblem::Spec spec{.collective = collective, .size = size, .parameters = parameters};
  const auto p = static_cast<std::size_t>(size);
  if (row_of(collective).has_counts()) {
    const std::size_t rows = row_of(collective).counts == BlockCounts::pairs ? p : 1;
    for (std::size_t i = 0; i < rows * p; ++i) spec.counts.push_back(block + i % p);
  } else if (row_of(collective).has_data()) {
    spec.count = has_whole_vectors(collective) ? block * p : block;
  }
  return spec;
}

inline std::size_t everyday_bytes(Collective collective, int size, std::size_t block) {
  return row_of(collective).has_data() ? block * static_cast<std::size_t>(size) * 4 : 0;
}

// Nothing if the algorithm refuses it.
inline std::optional<PlanProblem> everyday_problem(const Algorithm& algorithm, int size, std::size_t block,
                                                   const PlanParameters& parameters = {}) {
  std::optional<PlanProblem> problem(everyday_spec(algorithm.collective, size, block, parameters));
  if (algorithm.refuse(problem->request(0))) return std::nullopt;
  return problem;
}

}  // namespace col::test

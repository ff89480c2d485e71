// configs/selection.json as constants; compile_table.py makes the source file with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include <col/types.hpp>

namespace col::group {

template <class T>
inline constexpr T kMost = std::numeric_limits<T>::max();

// A SelectionRule without pointers. Pointers would need a relocation in every process that loads the library.
struct BuiltInRule {
  enum class Ranks : std::uint8_t { any, powers_of_two, others };

  Collective collective;
  int min_ranks, max_ranks;
  int min_nodes, max_nodes;
  int min_ranks_per_node, max_ranks_per_node;
  std::size_t min_bytes, max_bytes;
  char backend[8];
  Ranks ranks;
  char algorithm[40];
};

extern const std::span<const BuiltInRule> kBuiltInRules;
extern const std::string_view kBuiltInEvidence;

}  // namespace col::group

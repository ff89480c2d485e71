// What `colbench suite ps` measures. All functions are pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "colbench/cell.hpp"

namespace col::colbench {

// A way to do an allreduce.
struct PsMethod {
  std::string_view name;  // of its rows
  Operation operation = Operation::allreduce;
  std::string_view backend = "auto", algorithm = "auto";
  bool needs_peers = true;  // for one rank, it is the same copy as any other method
};
// In the order of the table. The others are compared with the reference.
std::span<const PsMethod> ps_methods();
inline constexpr std::size_t kReferenceMethod = 3;  // in ps_methods()
// The method of a row; null if the row has none of them.
const PsMethod* ps_method_of(const CellSpec& spec);

// The cells for one number of ranks: every method at every size; with `gloo` false, without those over Gloo.
std::vector<CellSpec> ps_cells(int ranks, std::span<const std::size_t> sizes, bool gloo);

// Memory that such a cell needs, for all ranks and the store together. For transports, it counts only what is certain:
// the buffers.
std::size_t memory_of(const CellSpec& spec);

// Takes the value of -n (or --ranks) out of `arguments`: numbers of ranks, ascending. Returns `fallback` if there is
// none. Throws UsageError.
std::vector<int> take_rank_list(std::vector<std::string>& arguments, std::vector<int> fallback);

}  // namespace col::colbench

// What `colbench suite ps` measures and prints. All functions are pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "colbench/cell/cell.hpp"
#include "colbench/cell/results.hpp"
#include "common/noted_table.hpp"

namespace col::colbench {

// A way to do an allreduce.
struct PsMethod {
  std::string_view name;  // of its rows
  std::string_view backend = "auto", algorithm = "auto";
  bool needs_peers = true;  // for one rank, it is the same copy as any other method
};
// In the order of the table. The others are compared with the reference.
std::span<const PsMethod> ps_methods();
inline constexpr std::size_t kReferenceMethod = 2;  // in ps_methods()
// The method of a row; null if the row has none of them.
const PsMethod* ps_method_of(const CellSpec& spec);

// The cells for one number of ranks: every method at every size; with `gloo` false, without those over Gloo.
std::vector<CellSpec> ps_cells(int ranks, std::span<const std::size_t> sizes, bool gloo);

// Memory that such a cell needs, for all ranks together. It counts only what is certain: the buffers.
std::size_t memory_of(const CellSpec& spec);

// Takes the value of -n (or --ranks) out of `arguments`: numbers of ranks, ascending. Returns `fallback` if there is
// none. Throws UsageError.
std::vector<int> take_rank_list(std::vector<std::string>& arguments, std::vector<int> fallback);

// ---- How much of a method's time is latency, copies and moved bytes -------------------------------------------------

// Seconds; they add up to the method's time.
struct Shares {
  double latency = 0;                 // its time at the smallest size
  std::optional<double> copies = {};  // the time of its copies within ranks, at the machine's copy bandwidth
  double bytes = 0;                   // the rest: bytes between ranks, reductions, waits
};

// Bytes that the row's method copies within its ranks, for all ranks together, without the copies that carry bytes
// between them: a plan's copy steps. Nothing if the algorithm that ran is not a plan.
std::optional<std::size_t> copied_bytes(const Cell& cell);

// Bytes per second, read and written, of all ranks at once, for a working set of that many bytes; 0 if it was not
// measured.
double copy_bandwidth(const Machine& machine, std::size_t bytes, int ranks);

// `copied`: as from copied_bytes(). No share is larger than what the previous ones have left.
Shares shares_of(double seconds, double smallest_seconds, std::optional<std::size_t> copied, double bandwidth);

// ---- The output of `colbench suite ps` ------------------------------------------------------------------------------

// A table for the rows with that many ranks. `machine` was measured with the same number of ranks. notes_text() says
// why rows are invalid.
tools::NotedTable ps_table(const Results& results, int ranks, const Machine& machine, bool utf8);

// What the columns mean, and what the servers are not: sentences.
std::vector<std::string> ps_legend();

// Adds the results for one more number of ranks: the rows and warnings, the machine with the most ranks, and the exit
// code that matters most to a reader.
void add_results(Results& all, const Results& one);

}  // namespace col::colbench

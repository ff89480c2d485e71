// What each collective is: one row of a table, from which checks, plans, tools and tests follow.
//
// A row says what the two sides of a call hold, on one rank of n:
//
//   vector   `count` elements: as many as on the other side
//   block    one block: what this rank alone contributes or gets
//   blocks   n blocks, one for each rank, in the order of the ranks
//
// A broadcast has its vector in `out` on every rank; the root's is what the others get.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <col/export.hpp>

namespace col {

enum class Collective : std::uint8_t {
  allreduce,
  reduce,
  broadcast,
  allgather,
  allgatherv,
  reduce_scatter,
  reduce_scatterv,
  gather,
  gatherv,
  scatter,
  scatterv,
  alltoall,
  alltoallv,
  scan,
  exscan,
  barrier,
  send,
  recv
};
inline constexpr int kCollectiveCount = 18;

COL_EXPORT std::string_view to_string(Collective collective) noexcept;
// The Collective of that name; throws invalid_argument listing the valid names.
COL_EXPORT Collective collective_from_string(std::string_view name);

enum class Extent : std::uint8_t { nothing, vector, block, blocks };

// Whether blocks have lengths of their own, and who knows them.
enum class BlockCounts : std::uint8_t {
  equal,     // they have not: all blocks are equally long
  everyone,  // all ranks pass the same list
  root,      // the root passes the list, every rank knows its own block
  pairs      // each rank passes two lists: what it sends to, and what it gets from, every other
};

// Over whose contributions an element of the result is reduced.
enum class Folds : std::uint8_t {
  nothing,     // the call moves data
  all,         // of all ranks
  up_to_rank,  // of the ranks up to this one, itself included
  below_rank   // of the ranks before this one: rank 0 gets nothing
};

// What nccl-tests multiplies the algorithm's bandwidth by, for n ranks: the share of the data that the busiest link of
// a rank carries.
enum class BusFactor : std::uint8_t {
  one,    // 1
  share,  // (n - 1) / n
  twice   // 2 (n - 1) / n
};

struct CollectiveRow {
  std::string_view name;
  Extent in = Extent::nothing, out = Extent::nothing;
  bool rooted = false;       // a root has a part of its own
  bool in_on_root = false;   // the root alone has an input
  bool out_on_root = false;  // the root alone has an output
  BlockCounts counts = BlockCounts::equal;
  Folds folds = Folds::nothing;
  BusFactor bus = BusFactor::one;
  bool is_message = false;  // between two ranks, not a collective

  constexpr bool reduces() const noexcept { return folds != Folds::nothing; }
  constexpr bool has_counts() const noexcept { return counts != BlockCounts::equal; }
  // The lengths of some blocks are known to two ranks only.
  constexpr bool has_private_counts() const noexcept {
    return counts == BlockCounts::root || counts == BlockCounts::pairs;
  }
  constexpr bool has_input(bool is_root) const noexcept { return in != Extent::nothing && (is_root || !in_on_root); }
  constexpr bool has_output(bool is_root) const noexcept { return out != Extent::nothing && (is_root || !out_on_root); }
  // Input and output may be the same memory, or the shorter one this rank's block of the longer one.
  constexpr bool has_in_place() const noexcept { return in != Extent::nothing && out != Extent::nothing; }
  constexpr bool has_blocks() const noexcept { return in == Extent::blocks || out == Extent::blocks; }
  constexpr double bus_factor(int ranks) const noexcept {
    const double share = ranks > 0 ? static_cast<double>(ranks - 1) / ranks : 0;
    return bus == BusFactor::one ? 1 : bus == BusFactor::share ? share : 2 * share;
  }
};

// In the order of the enumerators.
inline constexpr std::array<CollectiveRow, kCollectiveCount> kCollectives = {{
    {.name = "allreduce", .in = Extent::vector, .out = Extent::vector, .folds = Folds::all, .bus = BusFactor::twice},
    {.name = "reduce",
     .in = Extent::vector,
     .out = Extent::vector,
     .rooted = true,
     .out_on_root = true,
     .folds = Folds::all},
    {.name = "broadcast", .out = Extent::vector, .rooted = true},
    {.name = "allgather", .in = Extent::block, .out = Extent::blocks, .bus = BusFactor::share},
    {.name = "allgatherv",
     .in = Extent::block,
     .out = Extent::blocks,
     .counts = BlockCounts::everyone,
     .bus = BusFactor::share},
    {.name = "reduce_scatter",
     .in = Extent::blocks,
     .out = Extent::block,
     .folds = Folds::all,
     .bus = BusFactor::share},
    {.name = "reduce_scatterv",
     .in = Extent::blocks,
     .out = Extent::block,
     .counts = BlockCounts::everyone,
     .folds = Folds::all,
     .bus = BusFactor::share},
    {.name = "gather",
     .in = Extent::block,
     .out = Extent::blocks,
     .rooted = true,
     .out_on_root = true,
     .bus = BusFactor::share},
    {.name = "gatherv",
     .in = Extent::block,
     .out = Extent::blocks,
     .rooted = true,
     .out_on_root = true,
     .counts = BlockCounts::root,
     .bus = BusFactor::share},
    {.name = "scatter",
     .in = Extent::blocks,
     .out = Extent::block,
     .rooted = true,
     .in_on_root = true,
     .bus = BusFactor::share},
    {.name = "scatterv",
     .in = Extent::blocks,
     .out = Extent::block,
     .rooted = true,
     .in_on_root = true,
     .counts = BlockCounts::root,
     .bus = BusFactor::share},
    {.name = "alltoall", .in = Extent::blocks, .out = Extent::blocks, .bus = BusFactor::share},
    {.name = "alltoallv",
     .in = Extent::blocks,
     .out = Extent::blocks,
     .counts = BlockCounts::pairs,
     .bus = BusFactor::share},
    {.name = "scan", .in = Extent::vector, .out = Extent::vector, .folds = Folds::up_to_rank},
    {.name = "exscan", .in = Extent::vector, .out = Extent::vector, .folds = Folds::below_rank},
    {.name = "barrier"},
    {.name = "send", .in = Extent::vector, .is_message = true},
    {.name = "recv", .out = Extent::vector, .is_message = true},
}};

// Requires: an enumerator.
constexpr const CollectiveRow& row_of(Collective collective) noexcept {
  return kCollectives[static_cast<std::size_t>(collective)];
}

}  // namespace col

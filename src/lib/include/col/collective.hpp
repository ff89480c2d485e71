// The table of collectives: one row for each. Checks, plans, tools and tests read it.
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
// The Collective of that name. Throws invalid_argument that lists the valid names.
COL_EXPORT Collective collective_from_string(std::string_view name);

// The content of one side of a call (in or out) on one of n ranks. A broadcast has its vector in `out` on every rank:
// the other ranks get what the root has there.
enum class Extent : std::uint8_t {
  nothing,
  vector,  // `count` elements, as many on every rank
  block,   // one block: what this rank alone contributes or gets
  blocks   // n blocks, one for each rank, in rank order
};

// The lengths of blocks: may they differ, and which ranks know them?
enum class BlockCounts : std::uint8_t {
  equal,     // all blocks have the same length
  everyone,  // every rank passes the same list
  root,      // the root passes the list; every other rank knows only its own block
  pairs      // each rank passes two lists: how many elements it sends to each rank, and how many it gets from each
};

// The ranks whose contributions are reduced into an element of the result.
enum class Folds : std::uint8_t {
  nothing,     // none: the call only moves data
  all,         // those of all ranks
  up_to_rank,  // those of the ranks up to this one, this one included
  below_rank   // those of the ranks before this one: rank 0 gets nothing
};

// The bus bandwidth of nccl-tests is the algorithm bandwidth (bytes of the call / time) times this factor, for n ranks.
// The factor says how many times the size of the data goes over the busiest link of a rank.
enum class BusFactor : std::uint8_t {
  one,    // 1
  share,  // (n - 1) / n
  twice   // 2 (n - 1) / n
};

struct CollectiveRow {
  std::string_view name;
  Extent in = Extent::nothing, out = Extent::nothing;
  bool rooted = false;       // one rank, the root, has a special part
  bool in_on_root = false;   // only the root has an input
  bool out_on_root = false;  // only the root has an output
  BlockCounts counts = BlockCounts::equal;
  Folds folds = Folds::nothing;
  BusFactor bus = BusFactor::one;
  bool is_message = false;  // a message between two ranks, not a collective

  constexpr bool reduces() const noexcept { return folds != Folds::nothing; }
  constexpr bool has_counts() const noexcept { return counts != BlockCounts::equal; }
  // Only the two ranks that exchange a block know its length.
  constexpr bool has_private_counts() const noexcept {
    return counts == BlockCounts::root || counts == BlockCounts::pairs;
  }
  constexpr bool has_input(bool is_root) const noexcept { return in != Extent::nothing && (is_root || !in_on_root); }
  constexpr bool has_output(bool is_root) const noexcept { return out != Extent::nothing && (is_root || !out_on_root); }
  // Input and output may be the same memory, or the shorter one may be this rank's block of the longer one.
  constexpr bool has_in_place() const noexcept { return in != Extent::nothing && out != Extent::nothing; }
  // Not a barrier.
  constexpr bool has_data() const noexcept { return in != Extent::nothing || out != Extent::nothing; }
  constexpr bool has_blocks() const noexcept { return in == Extent::blocks || out == Extent::blocks; }
  constexpr double bus_factor(int ranks) const noexcept {
    const double share = ranks > 0 ? static_cast<double>(ranks - 1) / ranks : 0;
    return bus == BusFactor::one ? 1 : bus == BusFactor::share ? share : 2 * share;
  }
};

// One row for each enumerator, in the same order.
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

// Requires: `collective` is an enumerator.
constexpr const CollectiveRow& row_of(Collective collective) noexcept {
  return kCollectives[static_cast<std::size_t>(collective)];
}

}  // namespace col

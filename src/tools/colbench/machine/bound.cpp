#include "colbench/machine/bound.hpp"

#include <unistd.h>

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "colbench/machine/network.hpp"
#include "colbench/rank/message_workload.hpp"
#include "colbench/rank/player.hpp"

namespace col::colbench {
namespace {

constexpr std::size_t kLeastLevel = 4096;
// Of the bound: below this a cell is invalid.
constexpr double kTolerance = 0.8;

// Buffers of one group: how many blocks all its ranks together read and write.
struct Blocks {
  std::size_t read = 0, written = 0;
};

// Of messages, and of the store's suite.
Blocks blocks_of_messages(Operation operation, std::size_t p) {
  if (operation == Operation::store) return {p, p};
  return operation == Operation::bidirectional ? Blocks{2, 2} : Blocks{1, 1};  // pingpong: half a round trip
}

Blocks blocks_of(const CollectiveRow& row, std::size_t p, bool in_place) {
  const auto all = [p](Extent extent, bool on_root) {
    if (extent == Extent::nothing) return std::size_t{0};
    return (on_root ? 1 : p) * (extent == Extent::blocks ? p : 1);
  };
  Blocks blocks{all(row.in, row.in_on_root), all(row.out, row.out_on_root)};
  if (row.in == Extent::nothing && row.rooted) return {1, p - 1};  // the root's own vector is the input
  if (row.folds == Folds::below_rank) return {p - 1, p - 1};
  if (!in_place) return blocks;
  // What stays where it is need not move.
  if (row.folds == Folds::up_to_rank) blocks.written -= 1;
  if (row.reduces() || !row.has_blocks()) return blocks;
  const std::size_t own = row.rooted ? 1 : p;
  const bool others_read_it = row.in == Extent::block && !row.rooted;
  return {blocks.read - (others_read_it ? 0 : own), blocks.written - own};
}

const Machine::Level* level_at(const Machine& machine, std::size_t bytes) {
  for (const Machine::Level& level : machine.levels)
    if (level.bytes == bytes) return &level;
  return nullptr;
}

// Pairs of ranks that exchange messages at once.
std::size_t pairs_of(const CellSpec& spec) {
  std::size_t pairs = 0;
  for (int rank = 0; rank < spec.ranks; ++rank) {
    const auto partner = partner_of(spec, rank, spec.ranks);
    pairs += partner && partner->begins;
  }
  return pairs;
}

std::size_t bytes_of_group(const CellSpec& spec, int size) {
  const auto p = static_cast<std::size_t>(size);
  const auto collective = collective_of(spec.operation);
  // Alone, what is in place is there already.
  if (p == 1 && (spec.in_place || (collective && row_of(*collective).in == Extent::nothing))) return 0;
  const Blocks blocks =
      collective ? blocks_of(row_of(*collective), p, spec.in_place) : blocks_of_messages(spec.operation, p);
  return (blocks.read + blocks.written) * block_count(spec, size) * size_of(spec.dtype);
}

}  // namespace

std::size_t most_level(int ranks) {
  constexpr std::size_t kMost = std::size_t{64} << 20;
  const std::size_t memory =
      static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGE_SIZE));
  return std::clamp(std::bit_floor(memory / 4 / static_cast<std::size_t>(std::max(1, ranks))), kLeastLevel, kMost);
}

std::size_t bytes_that_must_move(const CellSpec& spec) {
  if (is_message(spec.operation)) return pairs_of(spec) * bytes_of_group(spec, 2);
  std::size_t bytes = 0;
  for (int rank = 0; rank < spec.ranks; ++rank) {
    const Placement placement = placement_of(spec.groups, rank, spec.ranks);
    if (placement.rank == 0) bytes += bytes_of_group(spec, placement.size);
  }
  return bytes;
}

std::size_t level_of(const CellSpec& spec) {
  const std::size_t most = most_level(spec.ranks);
  if (spec.cache == CacheState::cold) return most;
  const std::size_t ranks = is_message(spec.operation) ? 2 * pairs_of(spec) : static_cast<std::size_t>(spec.ranks);
  std::size_t bytes = bytes_that_must_move(spec) / std::max<std::size_t>(1, ranks);
  if (spec.cache == CacheState::rotate) bytes *= rotated_sets(spec, group_size_of(spec));
  return std::clamp(std::bit_ceil(bytes), kLeastLevel, most);
}

namespace {

Bound bound_within_node(const CellSpec& spec, const Machine& machine, int cpus) {
  Bound bound;
  const std::size_t bytes = bytes_that_must_move(spec);
  if (const Machine::Level* level = level_at(machine, level_of(spec));
      level != nullptr && level->best > 0 && bytes > 0) {
    bound.seconds = static_cast<double>(bytes) / level->best;
    bound.how = fmt::format("{} must move, at {:.1f} GB/s", size_text(bytes), level->best * 1e-9);
    bound.calibrations = level->calibrations;
  }
  // Messages in a window need no answer each.
  const bool waits = (is_message(spec.operation) ? 2 : group_size_of(spec)) > 1 && spec.cadence == Cadence::isolated &&
                     spec.operation != Operation::oneway && spec.operation != Operation::bidirectional;
  if (!waits) return bound;
  const int active = is_message(spec.operation) ? 2 : spec.ranks;
  const int turns = (active + cpus - 1) / std::max(1, cpus) - 1;
  const double latency = turns > 0 ? turns * machine.switch_seconds : machine.hand_over_seconds;
  if (latency <= bound.seconds) return bound;
  bound.seconds = latency;
  bound.how = turns > 0 ? fmt::format("{} {} of process on a core, {:.2f} us each", turns,
                                      turns == 1 ? "change" : "changes", machine.switch_seconds * 1e6)
                        : fmt::format("one hand-over between cores, {:.2f} us", machine.hand_over_seconds * 1e6);
  return bound;
}

}  // namespace

Bound bound_of(const CellSpec& spec, const Machine& machine, const RunFacts& run) {
  if (needs_gpu(spec)) return {};  // memory of GPUs, and the ways to it, have not been measured
  const Bound within = bound_within_node(spec, machine, run.cpus);
  const Bound between = network_bound(spec, machine, run.sync != "barrier");
  return between.seconds > within.seconds ? between : within;
}

void apply_bounds(Results& results, bool strict) {
  for (Cell& cell : results.cells) {
    const int recalibrations = cell.bound.recalibrations;
    cell.bound = bound_of(cell.spec, results.machine, results.run);
    cell.bound.recalibrations = recalibrations;
    const double median = statistics_of(cell).median;
    if (median <= 0 || median >= cell.bound.seconds) continue;
    const std::string what = fmt::format("{:.3g} us is {:.0f} % of what is possible here ({})", median * 1e6,
                                         100 * median / cell.bound.seconds, cell.bound.how);
    if (median >= kTolerance * cell.bound.seconds || !strict || recalibrations == 0) {
      results.warnings.push_back(fmt::format("{}: {}", text_of(cell.spec), what));
      continue;
    }
    cell.below_bound = true;
    if (cell.invalid.empty()) cell.invalid = "below the physical bound: " + what;
  }
}

}  // namespace col::colbench

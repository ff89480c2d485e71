#include "colbench/machine/bound.hpp"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "colbench/rank/message_workload.hpp"

namespace col::colbench {
namespace {

constexpr std::size_t kLeastLevel = 4096, kMostLevel = std::size_t{64} << 20;
// Of the bound: below this a cell is invalid.
constexpr double kTolerance = 0.8;

// Buffers of one group: how many blocks all its ranks together read and write.
struct Blocks {
  std::size_t read = 0, written = 0;
};

Blocks blocks_of(Operation operation, std::size_t p) {
  switch (operation) {
    case Operation::allreduce:
    case Operation::scan:
    case Operation::store:
      return {p, p};
    case Operation::exscan:
      return {p - 1, p - 1};
    case Operation::reduce:
      return {p, 1};
    case Operation::broadcast:
      return {1, p - 1};
    case Operation::allgather:
    case Operation::allgatherv:
      return {p, p * p};
    case Operation::reduce_scatter:
    case Operation::reduce_scatterv:
      return {p * p, p};
    case Operation::gather:
    case Operation::gatherv:
    case Operation::scatter:
    case Operation::scatterv:
      return {p, p};
    case Operation::alltoall:
    case Operation::alltoallv:
      return {p * p, p * p};
    case Operation::barrier:
      return {0, 0};
    case Operation::pingpong:  // half a round trip
    case Operation::oneway:
      return {1, 1};
    case Operation::bidirectional:
      return {2, 2};
  }
  return {};
}

// In place, what stays where it is need not move.
Blocks blocks_in_place(Operation operation, std::size_t p, Blocks blocks) {
  switch (operation) {
    case Operation::allgather:
    case Operation::allgatherv:
      return {p, p * p - p};
    case Operation::gather:
    case Operation::gatherv:
    case Operation::scatter:
    case Operation::scatterv:
      return {p - 1, p - 1};
    case Operation::alltoall:
    case Operation::alltoallv:
      return {p * p - p, p * p - p};
    default:
      return blocks;
  }
}

const Machine::Level* level_at(const Machine& machine, std::size_t bytes) {
  for (const Machine::Level& level : machine.levels)
    if (level.bytes == bytes) return &level;
  return nullptr;
}

// How many groups work at once.
std::size_t groups_of(const CellSpec& spec) {
  if (is_message(spec.operation)) {
    std::size_t pairs = 0;
    for (int rank = 0; rank < spec.ranks; ++rank) {
      const auto partner = partner_of(spec, rank, spec.ranks);
      pairs += partner && partner->begins;
    }
    return pairs;
  }
  return std::max<std::size_t>(1, static_cast<std::size_t>(spec.ranks / std::max(1, group_size_of(spec))));
}

}  // namespace

std::size_t bytes_that_must_move(const CellSpec& spec) {
  const int p = is_message(spec.operation) ? 2 : group_size_of(spec);
  Blocks blocks = blocks_of(spec.operation, static_cast<std::size_t>(p));
  if (spec.in_place) blocks = blocks_in_place(spec.operation, static_cast<std::size_t>(p), blocks);
  return groups_of(spec) * (blocks.read + blocks.written) * block_count(spec, p) * size_of(spec.dtype);
}

std::size_t level_of(const CellSpec& spec) {
  if (spec.cache != CacheState::hot) return kMostLevel;
  const std::size_t ranks = static_cast<std::size_t>(is_message(spec.operation) ? 2 : spec.ranks);
  return std::clamp(std::bit_ceil(bytes_that_must_move(spec) / ranks), kLeastLevel, kMostLevel);
}

Bound bound_of(const CellSpec& spec, const Machine& machine, int cpus) {
  Bound bound;
  const std::size_t bytes = bytes_that_must_move(spec);
  if (const Machine::Level* level = level_at(machine, level_of(spec));
      level != nullptr && level->best > 0 && bytes > 0) {
    bound.seconds = static_cast<double>(bytes) / level->best;
    bound.how = fmt::format("{} must move, at {:.1f} GB/s", size_text(bytes), level->best * 1e-9);
    bound.calibrations = level->calibrations;
  }
  // Messages in a window need no answer each.
  const bool waits = spec.ranks > 1 && spec.cadence == Cadence::isolated && spec.operation != Operation::oneway &&
                     spec.operation != Operation::bidirectional;
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

void apply_bounds(Results& results, bool strict) {
  for (Cell& cell : results.cells) {
    const int recalibrations = cell.bound.recalibrations;
    cell.bound = bound_of(cell.spec, results.machine, results.run.cpus);
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

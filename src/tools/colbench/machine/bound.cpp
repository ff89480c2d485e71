#include "colbench/machine/bound.hpp"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <map>

#include <fmt/format.h>

#include <col/plan.hpp>

namespace col::colbench {
namespace {

// How the ranks of one group are distributed over nodes.
struct Spread {
  int nodes = 1;
  int ranks_each = 0;  // 0: not equally many on each
};

int node_of(const Machine& machine, int rank) {
  return machine.node_of_rank[static_cast<std::size_t>(rank)];
}

std::map<int, Spread> spreads_of(const CellSpec& spec, const Machine& machine) {
  std::map<int, std::map<int, int>> ranks_of_group;  // by node
  for (int rank = 0; rank < spec.ranks; ++rank)
    ++ranks_of_group[placement_of(spec.groups, rank, spec.ranks).group][node_of(machine, rank)];
  std::map<int, Spread> spreads;
  for (const auto& [group, ranks_of_node] : ranks_of_group) {
    const int first = ranks_of_node.begin()->second;
    const bool equal = std::all_of(ranks_of_node.begin(), ranks_of_node.end(),
                                   [first](const auto& node) { return node.second == first; });
    spreads[group] = {.nodes = static_cast<int>(ranks_of_node.size()), .ranks_each = equal ? first : 0};
  }
  return spreads;
}

bool crosses_nodes(const CellSpec& spec, const Machine& machine) {
  if (!is_message(spec.operation))
    return std::ranges::any_of(spreads_of(spec, machine), [](const auto& group) { return group.second.nodes > 1; });
  for (int rank = 0; rank < spec.ranks; ++rank) {
    const auto partner = partner_of(spec, rank, spec.ranks);
    if (partner && node_of(machine, rank) != node_of(machine, partner->rank)) return true;
  }
  return false;
}

// colbench's blocks are equal also in the v-forms: the collective that does the same with blocks of one length.
Collective with_equal_blocks(Collective collective) {
  const CollectiveRow& wanted = row_of(collective);
  const auto same = [&](const CollectiveRow& row) {
    return row.in == wanted.in && row.out == wanted.out && row.in_on_root == wanted.in_on_root &&
           row.out_on_root == wanted.out_on_root && row.folds == wanted.folds && row.is_message == wanted.is_message;
  };
  return static_cast<Collective>(std::ranges::find_if(kCollectives, same) - kCollectives.begin());
}

// Whether each rank must hear of all others: then the last one to begin makes somebody wait, whatever clocks they have.
bool hears_of_all(Operation operation) {
  if (operation == Operation::pingpong) return true;
  const auto collective = collective_of(operation);
  if (!collective) return false;
  const CollectiveRow& row = row_of(*collective);
  return !row.rooted && (!row.reduces() || row.folds == Folds::all);
}

// Of several lengths that were measured, all that are not the shortest tell a rate.
double rate_of(const Machine::Fit& fit, std::size_t index) {
  const auto& [bytes, seconds, count] = fit.best[index];
  return std::max(0.0, seconds - fit.best.front().seconds) / static_cast<double>(bytes);
}

Bound bound_of_bytes(const Machine::Fit& fit, std::size_t bytes) {
  const double seconds = least_passing_seconds(fit, bytes);
  if (seconds <= 0) return {};
  return {.seconds = seconds,
          .how = fmt::format("{} must pass a node's port, at {:.3g} GB/s", size_text(bytes),
                             static_cast<double>(bytes) / seconds * 1e-9),
          .calibrations = fit.best.back().calibrations};
}

Bound bound_of_group(const CellSpec& spec, const Spread& spread, const Machine::Fit& fit) {
  const Collective collective = with_equal_blocks(collective_of(spec.operation).value());
  const CollectiveRow& row = row_of(collective);
  // A node stands for its ranks, as these may share what has come.
  const auto ranks = static_cast<std::size_t>(spread.ranks_each);
  const std::size_t whole = whole_bytes(spec, spread.nodes * spread.ranks_each);
  const std::size_t bytes = row.in == Extent::blocks && row.out == Extent::blocks ? ranks * whole : whole;
  const auto least = [&](CostModel::Link link, double gamma) {
    return lower_bound_seconds(collective, spread.nodes, bytes, {.intra = link, .gamma = gamma});
  };
  Bound bound = bound_of_bytes(fit, static_cast<std::size_t>(least({.alpha = 0, .beta = 1}, 0)));
  const double added = least({.alpha = 0, .beta = 0}, fit.best_gamma);
  if (added <= bound.seconds) return bound;
  return {.seconds = added,
          .how = fmt::format("each rank must reduce, at {:.3g} GB/s", 1e-9 / fit.best_gamma),
          .calibrations = fit.best.back().calibrations};
}

constexpr std::size_t kLeastLevel = 4096;
// Of the bound: below this a cell is invalid.
constexpr double kTolerance = 0.8;

// Buffers of one group: how many blocks all its ranks together read and write.
struct Blocks {
  std::size_t read = 0, written = 0;
};

Blocks blocks_of_messages(Operation operation) {
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
  const CollectiveRow* const row = find_row(spec.operation);
  // Alone, what is in place is there already.
  if (p == 1 && (spec.in_place || (row != nullptr && row->in == Extent::nothing))) return 0;
  const Blocks blocks = row != nullptr ? blocks_of(*row, p, spec.in_place) : blocks_of_messages(spec.operation);
  return (blocks.read + blocks.written) * block_count(spec, size) * size_of(spec.dtype);
}

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
  const bool waits = (is_message(spec.operation) ? 2 : group_size_of(spec)) > 1 && spec.cadence != Cadence::stream &&
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

double least_passing_seconds(const Machine::Fit& fit, std::size_t bytes) {
  double least = std::numeric_limits<double>::infinity();
  bool known = false;
  for (std::size_t i = 1; i < fit.best.size(); ++i) {
    const bool next_is_longer = i + 1 < fit.best.size() && fit.best[i + 1].bytes <= bytes;
    if (fit.best[i].bytes <= bytes) known = true;
    if (!next_is_longer) least = std::min(least, rate_of(fit, i));
  }
  return known ? least * static_cast<double>(bytes) : 0;
}

double faster(double a, double b) {
  return a <= 0 ? b : b <= 0 ? a : std::min(a, b);
}

void add_best_message(Machine::Fit& fit, const Machine::Fit::Message& message) {
  const auto place = std::lower_bound(fit.best.begin(), fit.best.end(), message,
                                      [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  if (place == fit.best.end() || place->bytes != message.bytes) {
    fit.best.insert(place, message);
    return;
  }
  place->seconds = faster(place->seconds, message.seconds);
  place->calibrations += message.calibrations;
}

Bound network_bound(const CellSpec& spec, const Machine& machine, bool common_start) {
  const bool known = machine.node_of_rank.size() == static_cast<std::size_t>(spec.ranks);
  if (!known) return {};
  const auto fit = std::find_if(machine.fits.begin(), machine.fits.end(),
                                [&](const Machine::Fit& one) { return one.backend == spec.backend; });
  if (fit == machine.fits.end() || fit->best.empty() || !crosses_nodes(spec, machine)) return {};
  Bound bound;
  if (is_message(spec.operation)) {
    bound = bound_of_bytes(*fit, whole_bytes(spec, 2));
  } else if (collective_of(spec.operation)) {
    for (const auto& [group, spread] : spreads_of(spec, machine)) {
      if (spread.nodes < 2 || spread.ranks_each == 0) continue;
      const Bound other = bound_of_group(spec, spread, *fit);
      if (other.seconds > bound.seconds) bound = other;
    }
  }
  const double message = fit->best.front().seconds;
  const bool waits_for_all = hears_of_all(spec.operation);
  // A rank that leaves the barrier later than the sender counts that much less.
  if (!common_start && !waits_for_all) bound.seconds = std::max(0.0, bound.seconds - message);
  // In a stream, and in a window, the next message does not wait for this one to arrive.
  const bool waits = spec.cadence != Cadence::stream && spec.operation != Operation::oneway &&
                     spec.operation != Operation::bidirectional && (common_start || waits_for_all);
  if (!waits || message <= bound.seconds) return bound.seconds > 0 ? bound : Bound{};
  return {.seconds = message,
          .how = fmt::format("one message between nodes, {:.3g} us", message * 1e6),
          .calibrations = fit->best.front().calibrations};
}

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

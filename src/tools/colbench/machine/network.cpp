#include "colbench/machine/network.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include <fmt/format.h>
#include <col/plan.hpp>

#include "colbench/rank/message_workload.hpp"
#include "colbench/rank/player.hpp"

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

Bound network_bound(const CellSpec& spec, const Machine& machine, bool common_start) {
  const bool known = machine.node_of_rank.size() == static_cast<std::size_t>(spec.ranks);
  if (!known || spec.operation == Operation::store) return {};  // the store is one of a host
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
  const bool waits = spec.cadence == Cadence::isolated && spec.operation != Operation::oneway &&
                     spec.operation != Operation::bidirectional && (common_start || waits_for_all);
  if (!waits || message <= bound.seconds) return bound.seconds > 0 ? bound : Bound{};
  return {.seconds = message,
          .how = fmt::format("one message between nodes, {:.3g} us", message * 1e6),
          .calibrations = fit->best.front().calibrations};
}

}  // namespace col::colbench

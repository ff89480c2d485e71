// The formula for long vectors over several nodes (rails.hpp), for equal nodes and one segment: then all nodes march in
// step. With more segments, messages inside of nodes and between them meet in a rank's ports.
#pragma once

#include <algorithm>

#include "plan/cost_terms.hpp"
#include "plan/node_clocks.hpp"

namespace col::plan {

struct RailsStages {
  int reducing_hops, gathering_hops;  // around the ring of nodes
  bool folds, spreads;                // inside of a node: before, after
};

inline double rails_seconds(NodeClocks& clocks, const RailsStages& stages) {
  const CostTerms inside = clocks.terms_in_node(), between = clocks.terms_between_nodes();
  const int nodes = clocks.nodes().count(), locals = clocks.nodes().size(0);
  const double piece = clocks.block();  // what a rank carries of a share
  if (nodes * clocks.nodes().most_ranks() != clocks.size() || inside.segments(piece) > 1) clocks.give_up();
  if (locals > 1) clocks.take_turns();
  double seconds = stages.reducing_hops * (between.message(piece) + between.add(piece)) +
                   stages.gathering_hops * between.message(piece);
  if (locals == 1) return seconds;
  const double message = inside.message(piece);
  if (stages.folds) {
    // The rank that needs what arrives last first adds up one share while the next arrives.
    const double adding = (locals - 1) * inside.add(piece);
    seconds += ((locals - 2) * nodes + 1) * message + (nodes - 1) * std::max(message, adding) + adding;
  }
  if (stages.spreads) seconds += (locals - 1) * nodes * message;
  return seconds;
}

}  // namespace col::plan

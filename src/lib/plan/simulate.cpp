// The simulator: a clock that jumps from one event to the next (simulation/engine.cpp).
//
// An instant has three parts. First all that ends: messages arrive, work is done, ports and cores come free. Ranks
// whose round is over post the messages of their next one; a message is ready when both of its ends are posted. Then
// every port that came free takes the first that waits for it and can start, in the order in which they became ready,
// ports out before ports in. Last, those that became ready now take their ports or begin to wait, in the order in which
// their senders listed them. Nothing is decided before all of an instant is known, so ranks that march in step do not
// get in each other's way because of the order in which the simulator looks at them.
//
// Work that needs a slice on its way waits for it, in the order listed; it has the rank's core for itself. Where cores
// are shared, work and the processor's share of messages go to whoever asked first. Where memory is shared, everyone
// who uses it at the moment has an equal share of its bandwidth (simulation/node.hpp), and is done when both that share
// and its own time are used up; a byte that is copied, reduced or sent within a node counts once.
//
// Memory: one round per rank, and the messages under way. Time: O(log) per message, and one round made per rank and
// round; a ring of 4,096 ranks, 33 million messages, takes seconds.
#include <cmath>

#include <fmt/format.h>

#include <col/plan.hpp>

#include "plan/simulation/engine.hpp"

namespace col {
namespace {

void check(std::string_view name, double value) {
  if (std::isfinite(value) && value >= 0) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} of a cost model is {}; it must be a number of at least 0", name, value));
}

}  // namespace

Simulation simulate(const PlanProblem& problem, const PlanOfRank& plans, const CostModel& model,
                    std::size_t element_size, std::size_t wide_size) {
  check("intra.alpha", model.intra.alpha);
  check("intra.beta", model.intra.beta);
  check("inter.alpha", model.inter.alpha);
  check("inter.beta", model.inter.beta);
  check("gamma", model.gamma);
  check("copy", model.copy);
  check("cores", model.cores);
  check("cpu_per_message", model.cpu_per_message);
  check("memory_bandwidth", model.memory_bandwidth);
  return plan::simulation::Engine(problem, plans, model, element_size, wide_size).run();
}

}  // namespace col

// Counts of a v-form, which the ranks of a node tell the one that leads it, for plans of two levels.
//
// In gatherv, scatterv and alltoallv, a rank knows the lengths of its own blocks alone. The rank that carries blocks
// for its whole node has to know those of all of its ranks before it can have a plan. These go in a plan of their own,
// whose elements are counts, and which needs no wire.
#include <algorithm>
#include <cstddef>
#include <vector>

#include <col/plan.hpp>

#include "plan/two_level/leaders.hpp"

namespace col::plan {
namespace {

std::size_t numbers_of_rank(const PlanRequest& request) {
  return row_of(request.collective).counts == BlockCounts::pairs ? 2 * static_cast<std::size_t>(request.size) : 1;
}

// The root of a collective receives none: it knows all counts.
bool knows_all(const PlanRequest& request, const Leaders& leaders) {
  return row_of(request.collective).rooted && leaders.node() == leaders.root_node();
}

std::vector<std::size_t> sent_counts(const PlanRequest& request) {
  if (row_of(request.collective).counts != BlockCounts::pairs) return {request.count};
  std::vector<std::size_t> counts(request.in_counts.begin(), request.in_counts.end());
  counts.insert(counts.end(), request.out_counts.begin(), request.out_counts.end());
  return counts;
}

std::size_t received_counts(const PlanRequest& request) {
  const Leaders leaders(request);
  if (!leaders.leads() || knows_all(request, leaders)) return 0;
  return numbers_of_rank(request) * static_cast<std::size_t>(leaders.local_size());
}

Plan gather_counts(const PlanRequest& request) {
  const Leaders leaders(request);
  Composition plan;
  if (knows_all(request, leaders)) return plan.done();
  const std::size_t numbers = numbers_of_rank(request);
  PlanRequest gather = leaders.in_node(Collective::gather, numbers);
  gather.widens = gather.wide_input = false;
  plan.add("linear", gather,
           leaders.place_in_node({Buffer::input, 0, numbers}, {Buffer::output, 0, received_counts(request)}));
  return plan.done();
}

// The longest block, in elements, that the leaders of nodes carry for others: a longer one is worth a message of its
// own. And it bounds what a leader keeps, which is four times the blocks between its neighbours and all ranks, at most.
std::size_t longest_carried(const PlanRequest& request, std::size_t element_size) {
  constexpr std::size_t kMostBytes = std::size_t{16} << 10, kMostKept = std::size_t{64} << 20;
  const std::size_t blocks =
      4 * static_cast<std::size_t>(Nodes(request).most_ranks()) * static_cast<std::size_t>(request.size);
  return std::max<std::size_t>(1, std::min(kMostBytes, kMostKept / blocks) / element_size);
}

}  // namespace

extern constinit const NeighbourCounts neighbour_counts = {
    .sent = sent_counts, .received = received_counts, .build = gather_counts, .segment = longest_carried};

}  // namespace col::plan

#include "plan/two_level/neighbours.hpp"

#include <cstddef>
#include <vector>

#include "plan/two_level/leaders.hpp"

namespace col::plan {
namespace {

std::size_t numbers_of_rank(const PlanRequest& request) {
  return row_of(request.collective).counts == BlockCounts::pairs ? 2 * static_cast<std::size_t>(request.size) : 1;
}

bool knows_all(const PlanRequest& request, const Leaders& leaders) {
  return row_of(request.collective).rooted && leaders.node() == leaders.root_node();
}

}  // namespace

std::vector<std::size_t> counts_to_tell(const PlanRequest& request) {
  if (row_of(request.collective).counts != BlockCounts::pairs) return {request.count};
  std::vector<std::size_t> told(request.in_counts.begin(), request.in_counts.end());
  told.insert(told.end(), request.out_counts.begin(), request.out_counts.end());
  return told;
}

std::size_t counts_to_learn(const PlanRequest& request) {
  const Leaders leaders(request);
  if (!leaders.leads() || knows_all(request, leaders)) return 0;
  return numbers_of_rank(request) * static_cast<std::size_t>(leaders.local_size());
}

Plan tell_neighbours(const PlanRequest& request) {
  const Leaders leaders(request);
  Composition plan;
  if (knows_all(request, leaders)) return plan.done();
  const std::size_t numbers = numbers_of_rank(request);
  PlanRequest gather = leaders.in_node(Collective::gather, numbers);
  gather.widens = gather.wide_input = false;
  plan.add("linear", gather,
           leaders.place_in_node({Buffer::input, 0, numbers}, {Buffer::output, 0, counts_to_learn(request)}));
  return plan.done();
}

}  // namespace col::plan

// The place of a rank of a simulated job, as it is told.
#include <algorithm>
#include <numeric>
#include <utility>

#include "simulation/rank.hpp"

namespace col::test {

bool SimulatedRank::is_wrong(Mistake::Kind kind) const {
  const auto& mistake = around_.plan.mistake;
  return mistake && mistake->rank == rank_ && mistake->kind == kind;
}

ContextSpec SimulatedRank::first_spec() {
  const JobPlan& plan = around_.plan;
  std::vector<int> all(static_cast<std::size_t>(plan.ranks));
  std::iota(all.begin(), all.end(), 0);
  Told told{.rank = rank_, .size = plan.ranks};
  if (is_wrong(Mistake::Kind::twice)) told.rank = plan.mistake->instead;
  if (is_wrong(Mistake::Kind::world_size)) told.size = plan.mistake->instead;
  return spec(is_wrong(Mistake::Kind::job) ? "another" : "first", all, told, plan.timeout);
}

ContextSpec SimulatedRank::spec(const std::string& job, const std::vector<int>& ranks, Told told, Duration timeout) {
  const JobPlan& plan = around_.plan;
  const auto self = std::find(ranks.begin(), ranks.end(), rank_);
  const auto store = make_tcp_store(kStoreHost, kStorePort, kStoreToken, timeout);
  Interrupt interrupt;
  if (plan.draws >= 2)
    interrupt = [this] {
      if (around_.truth.take_interrupt(process_)) throw Interrupted();
    };
  if (plan.meets) {
    ContextSpec met = ContextSpec::meet(store, told.rank, told.size, job, timeout, interrupt);
    met.serialize = plan.has_turns;
    return met;
  }
  const int host = plan.host_of(rank_);
  const auto is_here = [&](int one) { return plan.host_of(one) == host; };
  ContextSpec spec;
  spec.rank = told.rank;
  spec.world_size = told.size;
  spec.local_rank = static_cast<int>(std::count_if(ranks.begin(), self, is_here));
  spec.local_world_size = static_cast<int>(std::count_if(ranks.begin(), ranks.end(), is_here));
  spec.job_id = job;
  spec.store = store;
  if (plan.has_pages) {
    auto& page = around_.pages[{job, host}];
    if (!page) page = ControlPage::in_memory(spec.local_world_size);
    spec.control = page;
  }
  spec.timeout = timeout;
  spec.interrupt = std::move(interrupt);
  spec.serialize = plan.has_turns;
  return spec;
}

}  // namespace col::test

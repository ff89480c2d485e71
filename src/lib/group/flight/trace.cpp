#include "group/flight/trace.hpp"

#include <utility>

namespace col::group {

void Trace::record(bool on) {
  on_ = on;
  entries_.clear();
}

std::vector<TraceEntry> Trace::take() {
  return std::exchange(entries_, {});
}

void Trace::add_steps(Pending& ended) {
  for (const exec::Executed& executed : ended.run.executed)
    entries_.push_back(
        {ended.sequence, ended.request.collective, kept(ended.decision->algorithm), executed.round, executed.step});
  ended.run.executed.clear();
  if (on_ && !ended.decision->plan) add(ended.sequence, ended.request.collective, ended.decision->algorithm);
}

void Trace::add(std::uint64_t sequence, Collective collective, std::string_view algorithm) {
  entries_.push_back({sequence, collective, kept(std::string(algorithm))});
}

}  // namespace col::group

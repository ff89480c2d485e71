
#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "group/diagnosis/diagnosis.hpp"

namespace col::group {
namespace {

using State = RankActivity::State;

// All look at all.
constexpr int kFew = 32;

struct Candidate {
  const RankActivity* activity;
  int via;
  bool has_come;

  // Smaller is more likely.
  auto key() const { return std::tuple(!activity->stopped, has_come, activity->since_ns); }
};

}  // namespace

std::string last_seen(const RankActivity& activity) {
  if (activity.group.empty()) return "";
  const bool inside = activity.state == State::running || activity.state == State::waiting;
  return fmt::format(" (last seen {} {} of group '{}')", inside ? "in" : "after", activity.op, activity.group);
}

std::string Holdup::text() const {
  std::string name = member >= 0 ? fmt::format("rank {}", member) : fmt::format("rank {} of the job", activity.rank);
  if (activity.stopped) name += fmt::format(" (pid {})", activity.pid);
  const std::string what = activity.stopped
                               ? "stands still: a signal (SIGSTOP, ^Z) or a debugger has stopped it"
                               : "is in none of col's waits: its own code computes or hangs" + last_seen(activity);
  if (via < 0) return fmt::format("{} {}", name, what);
  return fmt::format("rank {} waits for others, and in the end for {}, which {}", via, name, what);
}

std::optional<Holdup> find_holdup(const Surroundings& surroundings, const std::vector<Operation>& operations,
                                  bool thorough) {
  const auto& control = surroundings.control;
  if (!control) return std::nullopt;
  const std::vector<RankActivity> activities = control->activities(thorough || control->local_ranks() <= kFew);
  const auto global = [&](int rank) { return surroundings.peers[static_cast<std::size_t>(rank)].global_rank; };
  std::optional<Candidate> best;
  for (const Operation& operation : operations) {
    for (const int rank : operation.counterparts) {
      const RankActivity* const last = last_in_chain(activities, global(rank));
      if (last == nullptr || last->state == State::finished || last->rank == global(surroundings.rank)) continue;
      const auto& awaited = operation.counterparts;
      const bool direct = std::find(awaited.begin(), awaited.end(), surroundings.rank_of(last->rank)) != awaited.end();
      const bool has_come = direct && operation.collective && is_same_group(last->group, surroundings.group) &&
                            last->sequence >= operation.sequence;
      // With nothing in flight, it has done its part.
      if (has_come && last->state == State::joined && !last->stopped) continue;
      const Candidate candidate{last, direct ? -1 : rank, has_come};
      if (!best || candidate.key() < best->key()) best = candidate;
    }
  }
  if (!best) return std::nullopt;
  return Holdup{*best->activity, surroundings.rank_of(best->activity->rank), best->via};
}

}  // namespace col::group

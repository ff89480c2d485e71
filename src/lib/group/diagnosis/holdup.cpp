
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

// ---- From host to host

int Diagnosis::world_rank_of(const Accused& accused) const {
  return accused.rank < 0 ? accused.world_rank
                          : surroundings_.peers[static_cast<std::size_t>(accused.rank)].global_rank;
}

// The rank of the job that a member waits for in the end, by what it says now; or kNobody, or kSomebody. One that
// has left because of an error has waited for its culprit.
int Diagnosis::awaited_by(int member) {
  const auto activity = surroundings_.activity_of(member);
  if (activity && activity->held_up_by >= 0) return activity->held_up_by;
  const bool may_wait = !activity || activity->state == State::waiting || activity->state == State::finished;
  if (member < 0 || !may_wait) return kNobody;
  if (const auto text = said_by(member)) heard_[member] = std::make_shared<const Calls>(Calls::decode(*text));
  const auto heard = heard_.find(member);
  if (heard == heard_.end()) return kNobody;
  const auto why = heard->second->has_left ? decode_error(heard->second->why) : std::nullopt;
  if (!why) return heard->second->held_up_by;
  return why->world_rank() >= 0 ? why->world_rank() : kSomebody;
}

// Nothing: in a circle nobody is to blame more than the first, and this rank knows that it waits. kSomebody: the last
// one of whom is known that it waits does not know for whom.
std::optional<int> Diagnosis::end_of_chain(int first) {
  int last = first, links = 0;
  for (int next = first; next != kNobody; ++links) {
    if (links > surroundings_.size()) return std::nullopt;
    last = next;
    if (last == kSomebody) return kSomebody;
    const int member = surroundings_.rank_of(last);
    if (member == surroundings_.rank) return std::nullopt;  // what it has said itself is not what it has heard
    next = awaited_by(member);
  }
  return last;
}

// Who is accused may itself wait, in another group, and for a rank on another host.
Diagnosis::Accused Diagnosis::follow(Accused accused) {
  const int first = world_rank_of(accused);
  const std::optional<int> last = accused.is_final ? std::nullopt : end_of_chain(first);
  if (!last || *last == first) return accused;
  const std::string name = accused.rank < 0 ? fmt::format("{} of the job", first) : std::to_string(accused.rank);
  if (*last == kSomebody) return {-1, fmt::format("{}; rank {} waits for others itself", accused.who, name)};
  accused.who += fmt::format("; rank {} waits for others, and in the end for rank {} of the job", name, *last);
  accused.rank = surroundings_.rank_of(*last);
  accused.world_rank = accused.rank < 0 ? *last : -1;
  return accused;
}

}  // namespace col::group

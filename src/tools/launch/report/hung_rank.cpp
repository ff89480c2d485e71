#include "launch/report/hung_rank.hpp"

#include <cstddef>
#include <vector>

namespace col::launch {
namespace {

using State = RankActivity::State;

bool is_out_of_time(const RankStory& rank) {
  return rank.said && rank.said->code == "timeout";
}

// What each rank was doing. One that had not joined may be waited for as well.
std::vector<RankActivity> activities_of(const JobStory& story) {
  std::vector<RankActivity> activities;
  for (const RankStory& rank : story.ranks) {
    RankActivity unknown;
    unknown.rank = rank.rank;
    activities.push_back(rank.last.value_or(unknown));
  }
  return activities;
}

// Whose chains lead to it.
std::vector<int> waiting_ranks(const JobStory& story) {
  std::vector<int> waiting;
  const bool lasted = story.result.cause == EndCause::timed_out || story.result.cause == EndCause::exit_timed_out;
  for (const RankStory& rank : story.ranks) {
    if (!rank.last) continue;
    const bool first_failure = story.result.cause == EndCause::rank_failed && rank.rank == story.result.culprit;
    if ((lasted && rank.last->state == State::waiting) || (first_failure && is_out_of_time(rank)))
      waiting.push_back(rank.last->rank);
  }
  return waiting;
}

}  // namespace

const RankStory* hung_rank(const JobStory& story) {
  const std::vector<RankActivity> activities = activities_of(story);
  const RankActivity* hung = nullptr;
  for (const int rank : waiting_ranks(story)) {
    const RankActivity* const last = last_in_chain(activities, rank);
    if (last == nullptr || last->rank == rank || last->state == State::finished) continue;
    const auto is_worse = [](const RankActivity& a, const RankActivity& b) {
      return a.stopped != b.stopped ? a.stopped : a.since_ns < b.since_ns;
    };
    if (hung == nullptr || is_worse(*last, *hung)) hung = last;
  }
  return hung != nullptr ? &story.ranks[static_cast<std::size_t>(hung - activities.data())] : nullptr;
}

int blamed_rank(const JobStory& story) {
  const RankStory* const hung = hung_rank(story);
  return hung != nullptr ? hung->rank : story.result.culprit;
}

}  // namespace col::launch

// Ranks that have joined, as a launcher sees them.
#pragma once

#include <cstdint>
#include <string>

#include "launch/report/job_story.hpp"

namespace col::launch {

inline constexpr std::uint64_t kNow = 100'000'000'000;

// The first one is process `first_pid`. All are members of `group`, in which each has ended its call number `calls`, an
// `op`, 14 seconds ago.
inline JobStory joined_ranks(int ranks, int first_pid, const std::string& group, const std::string& op,
                             std::uint64_t calls) {
  JobStory story;
  for (int rank = 0; rank < ranks; ++rank) {
    RankStory one;
    one.rank = one.local_rank = rank;
    one.status.pid = first_pid + rank;
    one.seen_ns = kNow;
    one.last.emplace();
    one.last->state = RankActivity::State::joined;
    one.last->rank = rank;
    one.last->pid = first_pid + rank;
    one.last->group = group;
    one.last->op = op;
    one.last->sequence = calls;
    one.last->since_ns = kNow - 14'000'000'000;
    one.history.groups = {{group, 7, calls}};
    story.ranks.push_back(one);
  }
  return story;
}

}  // namespace col::launch

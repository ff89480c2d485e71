// What a control page says of its ranks at this moment.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <col/job.hpp>

#include "launch/report/job_story.hpp"

namespace col::launch {

// How many calls of each rank stay in a report: enough to see which messages nobody has received.
inline constexpr std::size_t kReportedCalls = 64;

// True if a process of its job is left: the one that made it, or a rank.
bool lives(const ControlPage& page);

// Sets `last`, `seen_ns` and `history`. Requires: the ranks are those of the page, in its order.
void look_at_ranks(const ControlPage& page, std::vector<RankStory>& ranks, std::size_t most_calls = kReportedCalls);

// All that a page says, for who has not started its ranks: what they are, and how far they have come.
JobStory look_at_job(const ControlPage& page, std::string job_id, std::size_t most_calls);

}  // namespace col::launch

// What why() has found, for people: the sentence, and below it what each rank does.
#pragma once

#include <string_view>

#include "common/report.hpp"
#include "launch/report/job_story.hpp"
#include "launch/report/wait_graph.hpp"
#include "launch/report/why.hpp"

namespace col::launch {

// "computing", "waiting", "stopped", "asleep" (a spare), "dead": of one rank, at the time of the story.
std::string_view state_of_rank(const WaitGraph& graph, std::size_t index);

// Ranks that do the same share a row.
tools::Part why_part(const JobStory& story, const Why& found);

}  // namespace col::launch

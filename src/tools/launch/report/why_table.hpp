// What why() has found, for people: the sentence, and below it what each rank does.
#pragma once

#include <string>
#include <vector>

#include "common/style.hpp"
#include "launch/report/job_story.hpp"
#include "launch/report/wait_graph.hpp"
#include "launch/report/why.hpp"

namespace col::launch {

// "computing", "waiting", "stopped", "dead": of one rank, at the time of the story.
std::string_view state_of_rank(const WaitGraph& graph, std::size_t index);

// Lines without their ends. Ranks that do the same share a row.
std::vector<std::string> why_lines(const JobStory& story, const Why& found, tools::Style style);
inline std::vector<std::string> why_lines(const JobStory& story, tools::Style style) {
  return why_lines(story, why(story), style);
}

}  // namespace col::launch

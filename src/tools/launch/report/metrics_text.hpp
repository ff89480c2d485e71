// What the ranks of a job do, in the text format of Prometheus.
#pragma once

#include <string>

#include "launch/report/job_story.hpp"

namespace col::launch {

// Requires: RankStory::last is from this moment.
std::string metrics_text(const JobStory& story);

}  // namespace col::launch

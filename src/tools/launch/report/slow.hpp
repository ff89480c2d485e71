// Why a job is slow: how long its ranks were in calls of col, how long they waited there for the last one to come, who
// that was, and what it did instead, as far as that is known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/report.hpp"
#include "launch/report/job_story.hpp"

namespace col::launch {

// A rank that makes others wait again and again.
struct Slow {
  int rank = 0;
  std::string group, op;
  std::uint64_t last = 0, compared = 0;  // it was the last in so many of the calls that could be compared
  double late = 0;                       // on average of those, in seconds
  std::string sentence = {};             // without a full stop
};

// The one that costs the most. Nothing if no rank does so clearly: comes last much more often than its share, and costs
// the others a noticeable part of the time in which it was in its own code.
std::optional<Slow> find_slow(const JobStory& story);

// The sentence, and a table of all groups and kinds of calls. Empty if nothing was watched.
tools::Part slow_part(const JobStory& story);

}  // namespace col::launch

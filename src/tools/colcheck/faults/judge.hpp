// What the ranks of a harmed job must have seen.
#pragma once

#include <string>
#include <vector>

#include <col/error.hpp>

#include "colcheck/faults/job.hpp"
#include "colcheck/property.hpp"

namespace col::colcheck {

struct Expectation {
  ErrorCode code = ErrorCode::peer_lost;
  int culprit = -1;              // the rank that the errors must name
  std::vector<int> exempt = {};  // ranks that are checked in another way
  double since = 0;              // seconds since the job's start: their delay is counted from here …
  double within = 1;             // … and may be this many seconds
  double not_before = 0;         // seconds that the call must have lasted
};

// Each returns what is wrong, in one line; empty if nothing is.

// Checks that all ranks except the exempt ones have got that error, have got `aborted` from the next call if they had a
// group, and have ended by themselves.
std::string problem_with_errors(const JobEnd& end, const Expectation& expectation);
// Checks that all ranks except the exempt ones have made all their calls, with the right data.
std::string problem_with_success(const JobEnd& end, const std::vector<int>& exempt = {});
// Checks that a rank has ended by itself, and has reported.
std::string problem_with_end(const JobEnd& end, int rank);
// Checks that nothing is left of the job.
std::string problem_with_traces(const JobEnd& end);

// "rank 2 got timeout (about no rank) in call 2 after 1.02 s: …"
std::string describe(const JobEnd& end, int rank);

// The first one that is not empty.
std::string first_of(std::vector<std::string> problems);

// The numbers of ranks for drills: 3 and 4, if `selection` allows them; otherwise the smallest allowed number above
// that which one machine can run; otherwise 2, if that is at least `least`; otherwise none.
std::vector<int> drill_ranks(const Selection& selection, int least = 2);

}  // namespace col::colcheck

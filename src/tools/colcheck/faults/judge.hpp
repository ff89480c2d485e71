// How the cases of drills are drawn, and what the ranks of a harmed job must have seen.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <col/error.hpp>

#include "colcheck/engine/property.hpp"
#include "colcheck/faults/job.hpp"

namespace col::colcheck {

// The numbers of ranks for drills: 3 and 4, if `selection` allows them; otherwise the smallest allowed number above
// that which one machine can run; otherwise 2, if that is at least `least`; otherwise none.
std::vector<int> drill_ranks(const Selection& selection, int least = 2);

// Those of the selection. A drill is a job of its own. If its ranks are on this host, there is nothing over hosts.
std::vector<std::string> drill_backends(const Selection& selection);

// Appends cases of one property. Each has a seed of its own, and the next of the numbers of ranks.
class DrillCases {
 public:
  DrillCases(const Selection& selection, std::string_view property, std::vector<int> ranks, std::vector<Case>& cases)
      : selection_(selection), property_(property), ranks_(std::move(ranks)), cases_(cases) {}

  bool full() const { return selection_.effort == Effort::full; }
  // None if there is no number of ranks.
  std::vector<std::string> backends() const {
    return ranks_.empty() ? std::vector<std::string>() : drill_backends(selection_);
  }
  // Of the case that was added last, from 1 on.
  std::uint64_t number() const { return number_; }
  // The elements do not matter to a barrier. The root is drawn.
  Case& add(const std::string& backend, Primitive primitive, DType dtype = DType::float32, std::size_t count = 24);

 private:
  const Selection& selection_;
  std::string_view property_;
  std::vector<int> ranks_;
  std::vector<Case>& cases_;
  std::uint64_t number_ = 0;
};

// The rank that is harmed in this case.
int victim_of(const Case& c);

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
// Checks that all ranks have made all their calls, with the right data.
std::string problem_with_success(const JobEnd& end);
// Checks that a rank has ended by itself, and has reported.
std::string problem_with_end(const JobEnd& end, int rank);
// Checks that nothing is left of the job.
std::string problem_with_traces(const JobEnd& end);

// "rank 2 got timeout (about no rank) in call 2 after 1.02 s: …"
std::string describe(const JobEnd& end, int rank);

// The first one that is not empty.
std::string first_of(std::vector<std::string> problems);

}  // namespace col::colcheck

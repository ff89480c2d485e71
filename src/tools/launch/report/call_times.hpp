// How long the calls of a rank took, and whether it or others came last to them. It is what `colrun --report` says
// about a job that is slow, and is part of the story of a rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace col::launch {

// The calls of one kind in one group. Ranks are compared with those of the same host. Where calls came faster than they
// could be looked at, all numbers are estimated from those that were seen.
struct CallSite {
  std::string group;
  std::string op;
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;  // of the buffers that all ranks have in common
  double seconds = 0;       // in calls that have waited, or are long: from the first wait, or the begin, to the end

  // Of the calls that were seen on all ranks of the group on this host:
  std::uint64_t compared = 0;
  double waited = 0;       // seconds for the last one to come
  std::uint64_t last = 0;  // how often this rank was that one
  double late = 0;         // how long the others waited then, on average of them; the sum in seconds
};

// What the rank's main thread did, as the kernel and looks at its record tell.
struct OwnTime {
  double seconds = 0;  // how long it was looked at
  double outside = 0;  // of these, in none of col's calls
  double cpu = 0;      // on a processor
  double queued = 0;   // ready to run, with no processor
};

struct CallTimes {
  std::vector<CallSite> sites;  // by group and name
  OwnTime own;
};

}  // namespace col::launch

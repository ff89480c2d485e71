// How long the calls of a rank took, and whether it or others came last to them. It is what `colrun --report` says
// about a job that is slow, and is part of the story of a rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace col::launch {

// How long some calls took, to compare them with those of ranks on other hosts: one of `stride`, which is a power of
// two and as small as there is room for. Their numbers decide, and not the host: all keep the same ones without a word,
// and one that keeps fewer keeps some of those.
struct SampledCalls {
  static constexpr std::size_t kMost = 256;

  std::uint64_t token = 0;  // of their group, which no other group has; 0: there are none
  std::uint64_t stride = 1;
  int members = 0;                                                  // of the group, on this host
  std::vector<std::pair<std::uint64_t, std::uint64_t>> calls = {};  // number and nanoseconds, ascending

  void add(std::uint64_t of_token, std::uint64_t number, std::uint64_t took_ns);
  void thin();  // to half of them

 private:
  bool keeps(std::uint64_t number) const;
};

// The calls of one kind in one group. CallWatch compares ranks of one host, compare_hosts() those of several. Where
// calls came faster than they could be looked at, all numbers are estimated from those that were seen.
struct CallSite {
  std::string group;
  std::string op;
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;  // of the buffers that all ranks have in common
  double seconds = 0;       // in calls that have waited, or are long: from the first wait, or the begin, to the end

  // Of the calls that were seen on all ranks of the group on this host, or on all its hosts:
  std::uint64_t compared = 0;
  double waited = 0;       // seconds for the last one to come
  std::uint64_t last = 0;  // how often this rank was that one
  double late = 0;         // how long the others waited then, on average of them; the sum in seconds

  SampledCalls sampled = {};  // until compare_hosts() has made the four numbers above of it
  int hosts = 1;              // that were compared
  double doubt = 0;           // seconds: who was last by less than that is not known, between hosts
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
  // Seconds that a message needs to the host where the launchers meet, at most; only with several nodes.
  std::optional<double> distance;
};

}  // namespace col::launch

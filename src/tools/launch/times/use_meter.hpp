// Adds up what the ranks of a host do and use, from their page and from /proc.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include <col/job.hpp>

#include "launch/report/job_story.hpp"

namespace col::launch {

class UseMeter {
 public:
  // Sets RankStory::use. A rank's calls count from its first look on. Requires: the ranks are those of the page, and
  // what is said of them is of this moment.
  void look(const ControlPage& page, std::vector<RankStory>& ranks);
  // Other processes have taken the place of the ranks.
  void forget() { seen_.clear(); }

 private:
  struct Seen {
    std::uint64_t noted = 0;
    double calls = 0, bytes = 0;
  };

  RankUse use_of(const RankRecord& record, const RankStory& rank);

  std::map<int, Seen> seen_;  // by local rank
};

}  // namespace col::launch

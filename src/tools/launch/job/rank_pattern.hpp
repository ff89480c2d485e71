// Patterns in which % and a letter stand for a property of a rank: in labels, file names and variables.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace col::launch {

struct RankNames {
  int rank = 0;
  int local_rank = 0;
  int node_rank = 0;
  int world_size = 1;
  std::string host = {};
  std::string job_id = {};
  int restart = 0;
};

// Why `pattern` is not valid, in words for the user ("%q is not known; …"); nothing if it is valid.
std::optional<std::string> why_no_pattern(std::string_view pattern);

// %R has as many digits as the highest rank of the world. Requires: !why_no_pattern(pattern).
std::string expand_pattern(std::string_view pattern, const RankNames& names, std::string_view stream = {});

}  // namespace col::launch

// Patterns in which % and a letter stand for something of a rank: in labels, names of files and variables.
//
//   %r  rank                   %h  host               %s  stream: "out" or "err"
//   %R  rank, with zeros       %n  node rank          %j  job id
//   %l  local rank             %w  world size         %g  restart count (generation)
//   %%  a percent sign
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

// Why `pattern` is none, in words for the user ("%q is not known; …"); nothing when it is fine.
std::optional<std::string> why_no_pattern(std::string_view pattern);

// %R has as many digits as the highest rank of the world. Requires: !why_no_pattern(pattern).
std::string expand_pattern(std::string_view pattern, const RankNames& names, std::string_view stream = {});

}  // namespace col::launch

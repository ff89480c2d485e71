// What one node must start, and how its ranks are named.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace col::launch {

// What a pattern says by % and a letter: in labels, file names and variables.
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

// What one node must start: once for a job, and again for each restart.
struct Assignment {
  int node_rank = 0;
  int nodes = 1;
  int first_rank = 0;  // global rank of this node's first rank
  int local_ranks = 1;
  int world_size = 1;
  int restart = 0;
  std::string job_id = {};
  std::string store_url = {};    // empty: a file store in the job directory of this node, which is the only node
  std::string store_token = {};  // of a tcp:// store
  std::string master_address = "127.0.0.1";
  int master_port = 0;
  std::vector<int> ranks_of_nodes = {};  // empty: there is one node
};

// The number in the job of a place of this node: its rank or, of one behind the ranks, a number that no rank has.
inline int number_of(const Assignment& assignment, int place) {
  const int behind = place - assignment.local_ranks;
  if (behind < 0) return assignment.first_rank + place;
  return assignment.world_size + assignment.node_rank + behind * assignment.nodes;
}

// The pattern values of one of its places, on this host.
inline RankNames names_of(const Assignment& assignment, int local_rank, const std::string& host) {
  return {.rank = number_of(assignment, local_rank),
          .local_rank = local_rank,
          .node_rank = assignment.node_rank,
          .world_size = assignment.world_size,
          .host = host,
          .job_id = assignment.job_id,
          .restart = assignment.restart};
}

// The name of this machine; "unknown" if it has none.
std::string host_name();

}  // namespace col::launch

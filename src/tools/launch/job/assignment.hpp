// What one node must start: once for a job, and again for each restart.
#pragma once

#include <string>

#include "launch/job/rank_pattern.hpp"

namespace col::launch {

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
};

// The pattern values of one of its ranks, on this host.
inline RankNames names_of(const Assignment& assignment, int local_rank, const std::string& host) {
  return {.rank = assignment.first_rank + local_rank,
          .local_rank = local_rank,
          .node_rank = assignment.node_rank,
          .world_size = assignment.world_size,
          .host = host,
          .job_id = assignment.job_id,
          .restart = assignment.restart};
}

}  // namespace col::launch

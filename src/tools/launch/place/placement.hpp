// Where the ranks of this node run: their processors and devices.
#pragma once

#include <string>
#include <vector>

#include "launch/job/job_spec.hpp"
#include "launch/place/binding.hpp"
#include "launch/place/topology.hpp"

namespace col::launch {

struct Placement {
  Topology topology = {};  // empty if nothing is bound
  Binding binding = {};
  std::vector<CpuMask> masks = {};        // by local rank; empty: no rank is bound
  std::vector<std::string> gpus = {};     // values of CUDA_VISIBLE_DEVICES by local rank; empty: not changed
  std::vector<std::string> notices = {};  // for the user
};

// Also for --nproc-per-node gpu.
int visible_gpu_count();

// Throws LaunchError if requested processors or devices do not exist. With --gpus-per-rank, it may start a process for
// a moment: do not call it while another function waits for children.
Placement place_ranks(const JobSpec& spec);

}  // namespace col::launch

// Where the ranks of this node run: their processors and devices.
#pragma once

#include <string>
#include <vector>

#include "launch/job_spec.hpp"
#include "launch/place/binding.hpp"
#include "launch/place/topology.hpp"

namespace col::launch {

struct Placement {
  Topology topology = {};  // empty when nothing is bound
  Binding binding = {};
  std::vector<CpuMask> masks = {};        // by local rank; empty: none is bound
  std::vector<std::string> gpus = {};     // values of CUDA_VISIBLE_DEVICES by local rank; empty: left alone
  std::vector<std::string> notices = {};  // for the user
};

// For --nproc-per-node gpu, too.
int visible_gpu_count();

// Throws LaunchError when processors or devices that were asked for are not there. With --gpus-per-rank it may start a
// process for a moment: not while somebody else waits for children.
Placement place_ranks(const JobSpec& spec);

}  // namespace col::launch

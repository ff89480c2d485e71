// The GPUs of the ranks of a run.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <col/group.hpp>

#include "common/gpu.hpp"

namespace col::colcheck {

struct RankGpu {
  std::string host = {};  // distinguishes the hosts of a job
  tools::GpuFacts gpu = {};
  int of_host = 0;               // how many GPUs the host has
  std::string nccl = {};         // its version, and where it was found
  std::string why_not = {};      // why there is no GPU; empty if there is one
  std::string why_no_nccl = {};  // why NCCL cannot be used; empty if it can
};

// This rank's GPU. Does not throw if something is missing.
RankGpu look_for_gpu(const ContextSpec& rank);

// How many ranks, from the first on, have a GPU that no earlier rank has. NCCL can serve this many.
std::size_t ranks_with_own_gpu(std::span<const RankGpu> gpus);
// Whether NCCL may let ranks share a GPU. It can from version 2.30 on.
bool may_share_gpus();

// "ranks 0, 2: NVIDIA H200 0000:1b:00.0; rank 1: NVIDIA H200 0000:2b:00.0".
std::string list_of(std::span<const RankGpu> gpus);
// Whether one of them is a stand-in.
bool has_fake(std::span<const RankGpu> gpus);

}  // namespace col::colcheck

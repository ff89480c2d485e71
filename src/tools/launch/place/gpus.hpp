// Which GPUs each rank of this node gets.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace col::launch {

// Where to find GPUs.
struct GpuSources {
  std::string proc = "/proc";
  std::string dev = "/dev";
  std::string nvidia_smi = "nvidia-smi";   // searched in PATH; used if the driver's files do not tell
  std::chrono::milliseconds limit{5'000};  // for its answer
};

// The UUIDs of this node's NVIDIA GPUs, ordered by PCI bus id; empty if there are none, or no driver. Loads nothing of
// CUDA. Blocks for `limit` at most. It may start a process and wait for it: do not call it while another function waits
// for children.
std::vector<std::string> gpu_uuids(const GpuSources& sources = {});

// The devices of `uuids` that an inherited CUDA_VISIBLE_DEVICES allows (nothing: it is not set), in its order and by
// the rules of CUDA. Entries are indices, or UUIDs that may be shortened. Entries after the first one that names no
// device do not count. Names of MIG devices are passed through, because only the driver knows them.
std::vector<std::string> visible_gpus(const std::vector<std::string>& uuids, std::optional<std::string_view> visible);

// The value of CUDA_VISIBLE_DEVICES for each local rank: rank 0 gets the first `gpus_per_rank` devices, and so on.
// Empty if gpus_per_rank is 0. Throws LaunchError (125) if there are too few: devices are not shared.
std::vector<std::string> assign_gpus(const std::vector<std::string>& gpus, int gpus_per_rank, int local_ranks);

}  // namespace col::launch

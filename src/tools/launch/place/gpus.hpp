// Which GPUs each rank of this node gets.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace col::launch {

// Where to ask for GPUs.
struct GpuSources {
  std::string proc = "/proc";
  std::string dev = "/dev";
  std::string nvidia_smi = "nvidia-smi";   // looked for in PATH; asked when the driver's files do not tell
  std::chrono::milliseconds limit{5'000};  // for its answer
};

// The UUIDs of this node's NVIDIA GPUs by PCI bus id; empty when there are none, or no driver. Nothing of CUDA is
// loaded. Blocks for `limit` at most. May start a process and waits for it: not while somebody else waits for children.
std::vector<std::string> gpu_uuids(const GpuSources& sources = {});

// What is left of `uuids` under an inherited CUDA_VISIBLE_DEVICES (nothing: it is not set), in its order and by the
// rules of CUDA: indices, or UUIDs that may be cut short; what follows the first entry that names no device does not
// count. Names of MIG devices are passed through, for only the driver knows them.
std::vector<std::string> visible_gpus(const std::vector<std::string>& uuids, std::optional<std::string_view> visible);

// The value of CUDA_VISIBLE_DEVICES for each local rank: rank 0 gets the first `gpus_per_rank` of them, and so on.
// Empty when gpus_per_rank is 0. Throws LaunchError (125) when there are too few: devices are not shared.
std::vector<std::string> assign_gpus(const std::vector<std::string>& gpus, int gpus_per_rank, int local_ranks);

}  // namespace col::launch

// Where the ranks of this node run: their processors and devices.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launch/job/job_spec.hpp"
#include "launch/place/topology.hpp"

namespace col::launch {

// Which processors each rank of this node uses.
struct Binding {
  std::vector<std::vector<int>> cpus;  // by local rank, ascending; empty: that rank is not bound
  std::string notice = {};             // one line for the user if ranks have to share cores; otherwise empty
  std::string why_not = {};            // why To::automatic has bound nobody; otherwise empty
};

// Of all but To::automatic (auto_binding.hpp). Requires: local_ranks >= 1. Throws LaunchError (2) if the user named
// processors that this process may not use.
Binding plan_binding(const Topology& topology, const BindingSpec& spec, int local_ranks);

// For --report-bindings: "rank 3: CPUs 6-7 (core 3, NUMA node 0)", one line for each local rank. `ranks` are their
// global numbers.
std::vector<std::string> describe_bindings(const Topology& topology, const Binding& binding,
                                           std::span<const int> ranks);

// Processors in the kernel's form. It is made before the child that should run on them.
class CpuMask {
 public:
  CpuMask() = default;  // empty: apply() does nothing
  explicit CpuMask(std::span<const int> cpus);

  // From now on, the calling thread and everything that it starts run only on these. It is one system call, safe
  // between vfork and exec. Returns 0, or errno.
  int apply() const noexcept;

 private:
  std::vector<unsigned long> words_;
};

struct Placement {
  Topology topology = {};  // empty if nothing is bound
  Binding binding = {};
  std::vector<CpuMask> masks = {};     // by local rank, without spares; empty: nothing is bound
  std::vector<std::string> gpus = {};  // values of CUDA_VISIBLE_DEVICES by local rank, spares too; empty: not changed
  std::vector<std::string> notices = {};  // for the user
  CoreLocks locks{};                      // of the cores that ranks are bound to
};

// Also for --nproc-per-node gpu.
int visible_gpu_count();

// The launcher keeps the result while ranks run, for its locks. Throws LaunchError if requested processors or devices
// do not exist. With --gpus-per-rank, it may start a process for a moment: do not call it while another function waits
// for children.
//
// `threads` returns how many threads the rank with the most has, if one for which the user says nothing has that many.
Placement place_ranks(const JobSpec& spec, const std::function<int(int)>& threads);

// Where to find GPUs.
struct GpuSources {
  std::string proc = "/proc";
  std::string dev = "/dev";
  std::string sys = "/sys";
  std::string nvidia_smi = "nvidia-smi";   // searched in PATH; used if the driver's files do not tell
  std::chrono::milliseconds limit{5'000};  // for its answer
};

struct Gpu {
  std::string uuid;
  int node = -1;  // the NUMA node that it is attached to; -1: there is but one, or nobody tells
};

// This node's NVIDIA GPUs, ordered by PCI bus id; empty if there are none, or no driver. Loads nothing of CUDA. Blocks
// for `limit` at most. It may start a process and wait for it: do not call it while another function waits for
// children.
std::vector<Gpu> find_gpus(const GpuSources& sources = {});

std::vector<std::string> uuids_of(const std::vector<Gpu>& gpus);

// The devices of `uuids` that an inherited CUDA_VISIBLE_DEVICES allows (nothing: it is not set), in its order and by
// the rules of CUDA. Entries are indices, or UUIDs that may be shortened. Entries after the first one that names no
// device do not count. Names of MIG devices are passed through, because only the driver knows them.
std::vector<std::string> visible_gpus(const std::vector<std::string>& uuids, std::optional<std::string_view> visible);

// The value of CUDA_VISIBLE_DEVICES for each local rank: rank 0 gets the first `gpus_per_rank` devices, and so on.
// Empty if gpus_per_rank is 0. Throws LaunchError (125) if there are too few: devices are not shared.
std::vector<std::string> assign_gpus(const std::vector<std::string>& gpus, int gpus_per_rank, int local_ranks);

// The NUMA node of each rank's devices, `values` being what assign_gpus() returned; -1 where it is unknown, or where
// they are on several.
std::vector<int> nodes_of_devices(const std::vector<std::string>& values, const std::vector<Gpu>& gpus);

}  // namespace col::launch

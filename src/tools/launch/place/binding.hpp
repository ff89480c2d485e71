// Which processors each rank of this node uses.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "launch/job/binding_spec.hpp"
#include "launch/place/topology.hpp"

namespace col::launch {

struct Binding {
  std::vector<std::vector<int>> cpus;  // by local rank, ascending; empty: that rank is not bound
  std::string notice = {};             // one line for the user if ranks have to share cores; otherwise empty
};

// Requires: local_ranks >= 1. Throws LaunchError (2) if the user named processors that this process may not use.
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

}  // namespace col::launch

// The environment of the ranks.
#pragma once

#include <string>
#include <vector>

#include "launch/job_directory.hpp"

namespace col::launch {

// CPUs that this process may run on, at least 1.
int usable_cpus() noexcept;

// A TCP port of the loopback interface that is free now, chosen by the kernel. Throws LaunchError (125).
int pick_free_port();

// What all ranks share is built once, from the caller's environment:
// - an outer launcher's rank variables (PMI_*, PMIX_*, OMPI_COMM_*, SLURM_PROCID, …) are left out: a rank that saw them
//   would think that it belongs to that launcher's job;
// - what the launcher sets replaces what was there.
class Environment {
 public:
  // Requires: `inherited` is a null-terminated array of "NAME=value", as ::environ.
  Environment(const char* const* inherited, int ranks, int cpus, int master_port, std::string job_id,
              JobDirectory directory);

  // The variables of one rank, "NAME=value" each; a view for execve is made of these by spawn.
  // Valid as long as this object and until the next call.
  std::vector<char*> of_rank(int rank);

  // OMP_NUM_THREADS as it was set here because the caller had none; 0 when the caller had one.
  int omp_threads() const noexcept { return omp_threads_; }

 private:
  int ranks_;
  int omp_threads_ = 0;
  JobDirectory directory_;
  std::vector<std::string> shared_;
  std::vector<std::string> own_;  // of the rank asked for last
};

}  // namespace col::launch

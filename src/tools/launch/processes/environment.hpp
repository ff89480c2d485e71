// The environment of the ranks.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/job/assignment.hpp"
#include "launch/job/job_spec.hpp"
#include "launch/processes/job_directory.hpp"

namespace col::launch {

struct EnvironmentParts {
  const JobSpec& spec;
  const Assignment& assignment;
  const JobDirectory& directory;
  std::string host;
  // the number of processors that the ranks of this node share; called only if it matters
  std::function<int()> cpus = [] { return 1; };
  std::vector<std::string> gpus = {};  // CUDA_VISIBLE_DEVICES of each local rank; empty: not changed
};

// The part that all ranks of a node share is built once, from the caller's environment:
// - The rank variables of an outer launcher (PMI_*, PMIX_*, OMPI_COMM_*, SLURM_PROCID, …) are left out: a rank that saw
//   them would believe that it belongs to that launcher's job.
// - The user's settings (EnvironmentSpec, Program) replace what was there, in this order: --env-remove, --env-file and
//   -x, --rank-env, the program's own.
// - The launcher's variables replace everything.
class Environment {
 public:
  // Requires: `inherited` is a null-terminated array of "NAME=value", as ::environ. Keeps no reference to `parts`.
  Environment(const char* const* inherited, const EnvironmentParts& parts);

  // The variables of one rank for execve. Valid as long as this object lives, and until the next call.
  // `pmi_fd`: the rank's socket to the server of PMI; negative: it has none yet. `joins`: a spare, or one in the place
  // of a rank that was lost: which rank it will be, nobody knows.
  std::vector<char*> of_rank(int local_rank, int pmi_fd = -1, bool joins = false);

  // OMP_NUM_THREADS, if it was set here because the caller had none; 0 if the caller had one.
  int omp_threads() const noexcept { return omp_threads_; }
  // The processors that these threads are for; 0 as above.
  int cpus() const noexcept { return cpus_; }

 private:
  using Variables = std::vector<std::string>;  // "NAME=value" each

  void inherit(const char* const* inherited, const Variables& removed);

  Assignment assignment_;
  JobDirectory directory_;
  std::string host_;
  Variables per_rank_;
  bool mpi_names_, pmi_;
  std::vector<std::string> gpus_;
  std::vector<Variables> of_program_;  // by program
  std::vector<std::size_t> program_;   // by local rank
  int omp_threads_ = 0;
  int cpus_ = 0;
  Variables shared_;
  std::vector<std::string> fixed_;  // names of the variables in `shared_` that the launcher sets
  Variables own_;                   // those of the rank that was asked for last
};

// The NAME of "NAME=value".
std::string_view variable_name(std::string_view assignment) noexcept;

// The largest OMP_NUM_THREADS of a rank of this node: by the user's word, or else `otherwise`. `inherited` is what the
// launcher's environment has; null: nothing.
int most_threads(const JobSpec& spec, const char* inherited, int otherwise);

}  // namespace col::launch

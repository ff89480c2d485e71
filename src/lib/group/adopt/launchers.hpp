// What launchers other than colrun tell a process of its place in the job.
//
// Pure functions of the environment. A launcher's set of variables is complete when it says all that is needed; one
// that lacks a part gives nothing, since several of them mean something else then. A complete set that contradicts
// itself, or holds something else than numbers, is invalid_argument naming the variable.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace col::group::adopt {

// The value of a variable; nothing when unset or empty.
using Lookup = std::function<std::optional<std::string>(std::string_view name)>;

struct Place {
  std::string launcher;  // as in ContextSpec
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 0;  // 0: the launcher does not tell
  int restart_count = 0;
  std::string job;            // what the launcher calls the job, equal on all ranks; empty when no variable tells
  std::string node;           // what it calls this host; empty when no variable tells
  std::string several_hosts;  // the variables by which the ranks are on several hosts; empty when all are on this one
  std::optional<int> pmi_fd;  // where the launcher can be asked for the name of the job
  std::string believed;       // "RANK=1, WORLD_SIZE=4, LOCAL_RANK=1", for messages
};

// RANK, WORLD_SIZE, LOCAL_RANK. Without the last they may count pods (PyTorchJob), not processes.
std::optional<Place> from_torchrun(const Lookup& lookup);
// SLURM_PROCID, SLURM_STEP_ID, SLURM_STEP_NUM_TASKS, unless an mpirun runs between srun and this process: its daemon
// passes on the variables that srun gave to the daemon.
std::optional<Place> from_slurm(const Lookup& lookup);
// OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE.
std::optional<Place> from_open_mpi(const Lookup& lookup);
// PMI_RANK, PMI_SIZE, and PMI_FD or a store of the user's.
std::optional<Place> from_pmi(const Lookup& lookup);
// JOB_COMPLETION_INDEX, and COL_WORLD_SIZE or WORLD_SIZE.
std::optional<Place> from_kubernetes(const Lookup& lookup);

// The first of these that is complete, in this order.
std::optional<Place> find_place(const Lookup& lookup);

// Why a launcher's variables are there and yet none of the sets is complete, when that is probably a mistake: a line
// for the log. Empty otherwise.
std::string why_alone(const Lookup& lookup);

// How many tasks node number `node` has, by "4", "2,1" or "2(x3),1"; nothing when `text` does not tell.
std::optional<int> tasks_on_node(std::string_view text, int node);

}  // namespace col::group::adopt

// What launchers other than colrun tell a process about its place in the job.
//
// These are pure functions of the environment. A launcher's set of variables is complete if it says everything that is
// needed. An incomplete set gives nothing, because several of the variables then mean something else. A complete set
// that contradicts itself, or has values that are not numbers, is invalid_argument that names the variable.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace col::group::adopt {

// The value of a variable; nothing if it is unset or empty.
using Lookup = std::function<std::optional<std::string>(std::string_view name)>;

struct LaunchedRank {
  std::string launcher;  // as in ContextSpec
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 0;  // 0: the launcher does not tell
  int restart_count = 0;
  std::string job;            // the launcher's name for the job, equal on all ranks; empty if no variable tells
  std::string node;           // its name for this host; empty if no variable tells
  std::string several_hosts;  // the variables that show several hosts; empty if all ranks are on this one
  std::optional<int> pmi_fd;  // the socket for asking the launcher for the name of the job
  std::string believed;       // "RANK=1, WORLD_SIZE=4, LOCAL_RANK=1", for messages
};

// RANK, WORLD_SIZE, LOCAL_RANK. Without LOCAL_RANK, they may count pods (PyTorchJob) and not processes.
std::optional<LaunchedRank> from_torchrun(const Lookup& lookup);
// SLURM_PROCID, SLURM_STEP_ID, SLURM_STEP_NUM_TASKS, unless an mpirun runs between srun and this process: its daemon
// passes on the variables that srun gave to the daemon.
std::optional<LaunchedRank> from_slurm(const Lookup& lookup);
// OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE.
std::optional<LaunchedRank> from_open_mpi(const Lookup& lookup);
// PMI_RANK, PMI_SIZE, and PMI_FD or a store from the user.
std::optional<LaunchedRank> from_pmi(const Lookup& lookup);
// JOB_COMPLETION_INDEX, and COL_WORLD_SIZE or WORLD_SIZE.
std::optional<LaunchedRank> from_kubernetes(const Lookup& lookup);

// The first one of these that is complete, in this order.
std::optional<LaunchedRank> find_launched_rank(const Lookup& lookup);

// The variables that make this process a rank, colrun's too, as a line that no other rank and no other job has. Throws
// as these functions.
std::string place_line(const Lookup& lookup);

// If a launcher's variables exist, but none of the sets is complete, and this is probably a mistake: the reason, as a
// line for the log. Otherwise empty.
std::string why_alone(const Lookup& lookup);

// The ranks of one node, ascending, from SLURM_GTIDS: "0,2,5"; empty if `text` is no such list.
std::vector<int> ranks_on_node(std::string_view text);

// How many tasks node number `node` has, from "4", "2,1" or "2(x3),1"; nothing if `text` does not tell.
std::optional<int> tasks_on_node(std::string_view text, int node);

}  // namespace col::group::adopt

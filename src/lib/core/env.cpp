#include "core/env.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <system_error>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include <col/error.hpp>

#include "core/clock/scheduler.hpp"
#include "core/nearest_name.hpp"

namespace col::core::env {

namespace {

constexpr std::array kTable = {
    Variable{"COL_RANK", "integer, 0 to COL_WORLD_SIZE - 1", "another launcher's word, else a world of one",
             "This process's number in the job.", true},
    Variable{
        "COL_SPARE", "integer >= 0", "this process is a rank from the start",
        "In place of `COL_RANK`, `RANK` and `ROLE_RANK`, which are not set then: this process is one of `--spares`, or "
        "takes the place of a rank that was lost (`--elastic`). It has no rank yet, and is known by this number. "
        "`col::init()` is then `col::join()` without a limit: it returns when a `renew()` of the others has taken "
        "the process in, with the rank that it has got. `COL_LOCAL_RANK` and `LOCAL_RANK` are its place on the host: "
        "that of the lost rank or, of a spare, one behind the ranks. `COL_WORLD_SIZE` and `WORLD_SIZE` say with how "
        "many ranks the job began, and `COL_RESTART_COUNT` is that of the job.",
        true},
    Variable{"COL_WORLD_SIZE", "integer >= 1", "another launcher's word, else a world of one",
             "How many processes (ranks) the job has; of one with epochs, how many it began with.", true},
    Variable{"COL_LOCAL_RANK", "integer, 0 to COL_LOCAL_WORLD_SIZE - 1", "COL_RANK",
             "This process's number among those on its host: which GPU and which cores it takes.", true},
    Variable{"COL_LOCAL_WORLD_SIZE", "integer >= 1", "COL_WORLD_SIZE", "How many ranks run on this host.", true},
    Variable{"COL_NODE_RANK", "integer, 0 to COL_NNODES - 1", "0", "This host's number in the job.", true},
    Variable{"COL_NNODES", "integer >= 1", "1", "How many hosts the job has.", true},
    Variable{"COL_JOB_ID", "text", "empty",
             "The job's name, equal on all ranks and different for every job: ranks of another job are refused.", true},
    Variable{"COL_RESTART_COUNT", "integer >= 0", "0",
             "How often the job has been restarted. Keys in the store from before a restart are never seen.", true},
    Variable{"COL_STORE", "URL: file:///directory or tcp://host:port",
             "a directory of the job's own when all ranks share a host, else a server in rank 0",
             "Where the ranks find one another: a directory, or a server, that all of them can reach.", true},
    Variable{"COL_CONTROL", "path", "a rank that dies is noticed later",
             "The host's control page: why the job was aborted, and what each local rank is doing.", true},
    Variable{
        "COL_ERROR_FILE", "path", "not written",
        "Where this rank writes its last error, as JSON, so that the launcher can tell a cause from its consequences.",
        true},
    Variable{"COL_EPOCH_FILE", "path", "not written",
             "Where the lowest survivor of each host writes a line for each epoch of group \"default\", so that the "
             "launcher can tell of it, and end those that were left out.",
             true},
    Variable{"COL_TRACE_DIRECTORY", "path", "nobody collects a trace",
             "Where this rank keeps its calls for `colrun --trace`.", true},
    Variable{"COL_RDZV_ENDPOINT", "host:port, [address]:port, or a host alone",
             "the first host of the job, by another launcher's word, and a port from 20000 to 28999 by the job's name",
             "Where rank 0 serves the others when another launcher has started ranks on several hosts and `COL_STORE` "
             "is not set: its host, and a free port there, equal on all ranks. Under colrun, where its nodes meet.",
             false},
    Variable{
        "COL_STORE_TOKEN", "text of 1 to 512 bytes", "the content of COL_STORE_TOKEN_FILE",
        "The secret that the ranks and the server of a `tcp://` store prove to each other to know, equal on all of "
        "them. Without it other users could read and change the job's keys. It goes neither over the network nor "
        "into any message, but one that can be guessed can be tried: make it random. For the server in rank 0 it may "
        "be left out: the job's name then keeps other jobs out, by accident, not by intent.",
        false},
    Variable{"COL_STORE_TOKEN_FILE", "path", "COL_STORE_TOKEN is needed for a `tcp://` store",
             "A file that holds the token in one line. It must belong to this user and have mode 0600 or stricter.",
             false},
    Variable{"COL_TIMEOUT", "duration: 500ms, 30s, 5m, 2h, or seconds", "5m",
             "How long any call may wait for other ranks before it fails with `timeout`.", false},
    Variable{
        "COL_HOST_TIMEOUT", "duration: 5s, 500ms, 2m, or seconds; at least 500ms", "5s",
        "Within which time the ranks of other hosts know that a host is dead, frozen or cut off. Equal on all hosts. "
        "Under colrun, its launchers watch one another, so any rank may be stopped. Without it, the lowest rank of "
        "each host stands for it: set this to more (`1h`) before a debugger stops that rank.",
        false},
    Variable{"COL_LOG", "off | warn | info | debug", "warn",
             "How much is logged. `info` says once per group which backend, interface and hosts it uses.", false},
    Variable{"COL_LOG_FILE", "path", "stderr", "The file that log lines are appended to; ranks may share one.", false},
    Variable{
        "COL_BACKEND",
        "automatic | shm | hosts | hosts_ucx | gloo | ucx | nccl, or one that the program has registered", "automatic",
        "The backend of every group for which the program names none; one that it names wins. `gloo` and `ucx` are "
        "then for ranks of different hosts; those that share a host, of several, share memory. Equal on all ranks.",
        false},
    Variable{"COL_ALGORITHM", "collective:algorithm, comma-separated", "chosen by table",
             "Which algorithm runs a collective: `allreduce:ring,broadcast:knomial:radix=8`, or a plan of your own: "
             "`allreduce:file:my.json`.",
             false},
    Variable{"COL_SELECTION", "path", "the built-in table",
             "A table of rules by which algorithms are chosen (docs/selection.md).", false},
    Variable{
        "COL_NUMERICS", "fast | strict | deterministic", "fast",
        "`strict` takes no algorithm of a backend that rounds more than once or may lose a NaN; `deterministic` only "
        "those that combine every element in rank order.",
        false},
    Variable{
        "COL_ORDER", "any | rank | tree", "any",
        "The order of reductions whose call names none, in contexts that name none (`Options::order`). `rank` is as "
        "`COL_NUMERICS=deterministic`, with which `tree` does not go together. Equal on all ranks.",
        false},
    Variable{"COL_CHECK", "lazy | strict", "lazy",
             "`strict` compares every collective call with the other ranks' before any data moves; slow.", false},
    Variable{"COL_PROGRESS", "calls | thread", "calls",
             "When asynchronous operations move on: inside calls on their group, or in a thread of their own too.",
             false},
    Variable{"COL_ISA", "baseline | avx2 | avx512", "the best that this processor has",
             "With which instructions the library reduces and converts. The results are the same, bit by bit.", false},
    Variable{"COL_CALIBRATE", "on | off", "on",
             "Whether ranks that share memory try in the program's own calls which of several ways to the same bits is "
             "faster: one copy by the kernel or none (`COL_CMA`), and how they write what others read. By `off`, all "
             "goes through slots that are written in the usual way. Rank 0's value counts for all.",
             false},
    Variable{
        "COL_CMA", "auto | off | on", "auto",
        "Over shared memory: whether broadcast, scatter, gather, allgather and alltoall, reduce and allreduce of two "
        "ranks, and messages of 32 KiB and more, go by one copy of the kernel (process_vm_readv): by `auto` where "
        "ranks try it and it is faster in the program's own calls; `off` never, `on` always where it works. Rank 0's "
        "value counts for all.",
        false},
    Variable{
        "COL_TRACE", "path", "no trace",
        "A file that gets a timeline of the calls of all ranks, for ui.perfetto.dev and chrome://tracing. Each rank "
        "adds its part when it exits; one that is killed does not. `colrun --trace` has the part of every rank.",
        false},
    Variable{"COL_TRACE_LIMIT", "bytes: a number, or one with K, M, G or T", "256M",
             "How large that file may become: of the calls of each rank, the last ones stay.", false},
    Variable{
        "COL_FAULT", "kill|stop|exit|delay:rank=R,op=N,step=N,group=NAME,ms=N,code=N, or start:op=N", "none",
        "For drills: what happens to one rank at one step of one collective, for example "
        "`kill:rank=2,op=17,step=3` (at its begin where it runs without a plan, as `shared` does); or the number at "
        "which groups begin to count their collectives, "
        "`start:op=4294967290` on all ranks.",
        false},
    Variable{"COL_SOCKET_IFNAME", "interface name, or a comma-separated list", "chosen from the routes",
             "The network interface between hosts. Gloo takes the first of the list that exists, UCX all of them.",
             false},
    Variable{"COL_PLUGIN_PATH", "folders, separated by colons", "the folder of libcol.so",
             "Where the libraries of backends that are loaded on first use (libcol_gloo.so, libcol_nccl.so, "
             "libcol_ucx.so) are looked for before.",
             false},
    Variable{"COL_NCCL_BLOCKING", "off | on", "off",
             "`on`: communicators of NCCL wait inside of their calls, which a thread of col's makes for each group and "
             "GPU. Without it, NCCL makes a thread for every call (docs/gpu.md). It has not run on a GPU so far.",
             false},
    Variable{"COL_NCCL_LIBRARY", "path", "libnccl.so.2, as the dynamic linker finds it, else in the CUDA toolkit",
             "The NCCL that the nccl backend loads.", false},
    Variable{
        "COL_NCCL_SETTINGS", "name=value, separated by commas", "NCCL's own",
        "Settings of NCCL for all groups of this process, for example `cta_policy=efficiency,max_ctas=8`; those of "
        "a group (`GroupSpec::nccl_settings`) win over them, name by name. docs/gpu.md lists them.",
        false},
    Variable{"COL_GROUP_NAME", "text", "no group is adopted",
             "A group that this process joins at the first call that names it, without init_collective_group. The next "
             "three describe it.",
             false},
    Variable{"COL_GROUP_RANK", "integer, 0 to COL_GROUP_WORLD_SIZE - 1", "required with COL_GROUP_NAME",
             "This process's rank in that group.", false},
    Variable{"COL_GROUP_WORLD_SIZE", "integer >= 1", "required with COL_GROUP_NAME", "How many ranks that group has.",
             false},
    Variable{"COL_GROUP_BACKEND", "automatic | shm | hosts | gloo | nccl", "automatic", "The backend of that group.",
             false},
};

// What other launchers set for each process, and TMPDIR. group/adopt/launchers.cpp says which of them make a whole.
constexpr std::array kLauncherVariables = {
    LauncherVariable{"RANK", "torchrun", "As `COL_RANK`. Believed only together with the next two."},
    LauncherVariable{"WORLD_SIZE", "torchrun", "As `COL_WORLD_SIZE`. Also that of a Kubernetes Indexed Job."},
    LauncherVariable{"LOCAL_RANK", "torchrun",
                     "As `COL_LOCAL_RANK`. Operators that set the first two for a pod do not set this one."},
    LauncherVariable{"LOCAL_WORLD_SIZE", "torchrun", "As `COL_LOCAL_WORLD_SIZE`."},
    LauncherVariable{"GROUP_RANK", "torchrun", "As `COL_NODE_RANK`."},
    LauncherVariable{"GROUP_WORLD_SIZE", "torchrun", "As `COL_NNODES`."},
    LauncherVariable{"MASTER_ADDR", "torchrun",
                     "With the next two it names the job. With ranks on several hosts, rank 0 is looked for there."},
    LauncherVariable{"MASTER_PORT", "torchrun", "See MASTER_ADDR. libcol never uses the port."},
    LauncherVariable{"TORCHELASTIC_RUN_ID", "torchrun", "See MASTER_ADDR."},
    LauncherVariable{"TORCHELASTIC_RESTART_COUNT", "torchrun", "As `COL_RESTART_COUNT`."},
    LauncherVariable{"SLURM_PROCID", "Slurm",
                     "The rank in the step of `srun`. Believed only together with SLURM_STEP_ID and "
                     "SLURM_STEP_NUM_TASKS, and never in a rank of an mpirun that runs inside of the step."},
    LauncherVariable{"SLURM_STEP_ID", "Slurm", "With SLURM_JOB_ID it names the job."},
    LauncherVariable{"SLURM_STEP_NUM_TASKS", "Slurm", "The number of ranks."},
    LauncherVariable{"SLURM_JOB_ID", "Slurm", "See SLURM_STEP_ID."},
    LauncherVariable{"SLURM_LOCALID", "Slurm", "The rank among those on this host."},
    LauncherVariable{"SLURM_NODEID", "Slurm", "The number of this host in the step."},
    LauncherVariable{"SLURM_STEP_NUM_NODES", "Slurm", "The number of hosts."},
    LauncherVariable{"SLURM_STEP_NODELIST", "Slurm",
                     "The hosts: `n[1-3,7]`. Ranks on several meet at the lowest rank of the first, mostly rank 0."},
    LauncherVariable{"SLURMD_NODENAME", "Slurm", "Slurm's name of this host, as it is in that list."},
    LauncherVariable{"SLURM_GTIDS", "Slurm", "The ranks on this host: `0,2,5`."},
    LauncherVariable{"SLURM_STEP_TASKS_PER_NODE", "Slurm", "How many ranks each host has: `2(x3),1`."},
    LauncherVariable{"SLURM_DISTRIBUTION", "Slurm",
                     "How ranks go over the hosts: only for messages that say where missing ranks are."},
    LauncherVariable{"SLURM_HET_SIZE", "Slurm", "Set in heterogeneous jobs. As SLURM_DISTRIBUTION."},
    LauncherVariable{"SLURM_RESTART_COUNT", "Slurm", "As `COL_RESTART_COUNT`."},
    LauncherVariable{"OMPI_COMM_WORLD_RANK", "Open MPI", "The rank. Believed only together with the next three."},
    LauncherVariable{"OMPI_COMM_WORLD_SIZE", "Open MPI", "The number of ranks."},
    LauncherVariable{"OMPI_COMM_WORLD_LOCAL_RANK", "Open MPI", "The rank among those on this host."},
    LauncherVariable{"OMPI_COMM_WORLD_LOCAL_SIZE", "Open MPI", "The number of ranks on this host."},
    LauncherVariable{"PMIX_NAMESPACE", "Open MPI", "It names the job."},
    LauncherVariable{"PMIX_SERVER_TMPDIR", "Open MPI", "The launcher's own directory, which names the job as well."},
    LauncherVariable{"PMIX_HOSTNAME", "Open MPI", "Which host this is."},
    LauncherVariable{"PMIX_RANK", "PMIx", "Not enough by itself: nothing says how many ranks there are."},
    LauncherVariable{"PMI_RANK", "MPICH",
                     "The rank. Believed only together with PMI_SIZE and PMI_FD (or `COL_STORE`)."},
    LauncherVariable{"PMI_SIZE", "MPICH", "The number of ranks."},
    LauncherVariable{"PMI_FD", "MPICH",
                     "The open socket to the launcher. libcol asks there for the job's name, once, and closes the "
                     "conversation: MPI cannot be initialised in the same process afterwards."},
    LauncherVariable{"MPI_LOCALRANKID", "MPICH", "The rank among those on this host."},
    LauncherVariable{"MPI_LOCALNRANKS", "MPICH", "The number of ranks on this host."},
    LauncherVariable{"MPIR_CVAR_CH3_INTERFACE_HOSTNAME", "MPICH",
                     "This host, as `mpiexec` has reached it. With ranks on several, that of rank 0 is the meeting "
                     "place: the ranks learn it from the launcher, unless `COL_RDZV_ENDPOINT` is set."},
    LauncherVariable{"JOB_COMPLETION_INDEX", "Kubernetes",
                     "The rank in an Indexed Job. Believed only together with `COL_WORLD_SIZE` or WORLD_SIZE. "
                     "Rank 0 is looked for at `<job>-0`, which a headless service makes known."},
    LauncherVariable{"TMPDIR", "any",
                     "The ranks of such a job that share a host have a directory of theirs in "
                     "`$TMPDIR/col-<user id>`, else in `/tmp/col-<user id>`. The last rank removes it."},
};

// What NCCL and UCX read by themselves, where the backend has to know what they were told.
struct EngineVariable {
  std::string_view name;
  std::string_view meaning;
};

constexpr std::array kNcclVariables = {
    EngineVariable{"NCCL_MULTI_RANK_GPU_ENABLE",
                   "`1` on all ranks: several of them may be on one GPU, from NCCL 2.30.3 on. A group that names no "
                   "backend then takes nccl there too; else memory of GPUs goes through the host."},
    EngineVariable{
        "NCCL_MAX_CTAS",
        "How many blocks of threads NCCL's kernels have at most. Where it is unset and ranks share a GPU, col "
        "asks for 4, so that the kernels of all of them find room on it."},
    EngineVariable{"NCCL_COMM_BLOCKING",
                   "`1` wins over what col asks for, and NCCL would wait inside its calls, where no deadline of col's "
                   "holds: the backend is unavailable, but with `COL_NCCL_BLOCKING=on`. With that, `0` makes it so."},
    EngineVariable{
        "NCCL_SOCKET_IFNAME",
        "The network interfaces. Where it is unset, it becomes those of `COL_SOCKET_IFNAME` that are there."},
    EngineVariable{"CUDA_HOME",
                   "A CUDA toolkit, in whose `lib64` NCCL is looked for, after the dynamic linker's places."},
    EngineVariable{"CUDA_PATH", "The same."},
};

constexpr std::array kUcxVariables = {
    EngineVariable{"UCX_TLS", "The transports. Where it is unset, all that UCX finds but its shared memory: `^shm`."},
    EngineVariable{"UCX_NET_DEVICES",
                   "The interfaces and devices; `COL_SOCKET_IFNAME` does not count then. Where it is unset: the "
                   "interface that col chooses, and every port of InfiniBand and RoCE."},
    EngineVariable{"UCX_KEEPALIVE_INTERVAL", "Where it is unset: `1s`, so that a peer that is gone is noticed soon."},
    EngineVariable{"UCX_LOG_LEVEL",
                   "If it is set, UCX writes its own log. Else its lines are part of col's, at level `debug`."},
    EngineVariable{"UCX_HANDLE_ERRORS",
                   "If it is set, UCX keeps its handlers of SIGSEGV and other signals. Else col removes them."},
};

struct ForeignVariable {
  std::string_view names;
  std::string_view meaning;
};

// What colrun itself reads.
constexpr std::array<std::string_view, 2> kOfColrunAlone = {"COL_RDZV_TOKEN", "COL_RDZV_TOKEN_FILE"};

constexpr std::array kLauncherTable = {
    ForeignVariable{"`COLRUN_*`",
                    "Options: `COLRUN_MAX_RESTARTS=2` is `--max-restarts 2`; `COLRUN_CONFIG` names a file "
                    "of them. `man colrun` has the names. The command line wins."},
    ForeignVariable{"`COL_RDZV_ENDPOINT`", "Where the nodes of a job meet, when `--rdzv-endpoint` is not given."},
    ForeignVariable{"`COL_HOST_TIMEOUT`", "Within which time its launchers know that another node is lost: see above."},
    ForeignVariable{"`COL_RDZV_TOKEN`, `COL_RDZV_TOKEN_FILE`",
                    "A secret, or a file of mode 0600 with one, the same on all nodes, which prove to each other that "
                    "they know it: a "
                    "node without it is refused, and whoever listens in its place is not obeyed. It is not sent. Ranks "
                    "do not get it."},
    ForeignVariable{"`PBS_NODEFILE`", "The hosts of `--scheduler pbs`: a file with a line for each rank."},
    ForeignVariable{"`LSB_DJOB_HOSTFILE`, `LSB_MCPU_HOSTS`",
                    "The hosts of `--scheduler lsf`: such a file, or `a 4 b 2`. The first counts."},
    ForeignVariable{"`CUDA_VISIBLE_DEVICES`", "The devices that `--gpus-per-rank` deals out, when it is set."},
    ForeignVariable{"`TMPDIR`", "colrun makes the job's directory there, else in `/tmp`, and removes it at the end."},
};

// What colrun sets so that programs written for torchrun and for MPICH work; libcol does not need them.
constexpr std::array kForeignTable = {
    ForeignVariable{"`RANK`, `WORLD_SIZE`", "As `COL_RANK`, `COL_WORLD_SIZE`."},
    ForeignVariable{"`LOCAL_RANK`, `LOCAL_WORLD_SIZE`", "As `COL_LOCAL_RANK`, `COL_LOCAL_WORLD_SIZE`."},
    ForeignVariable{"`GROUP_RANK`, `GROUP_WORLD_SIZE`", "As `COL_NODE_RANK`, `COL_NNODES`."},
    ForeignVariable{"`ROLE_NAME`", "`default`: colrun knows one role."},
    ForeignVariable{"`ROLE_RANK`, `ROLE_WORLD_SIZE`", "As `COL_RANK`, `COL_WORLD_SIZE`."},
    ForeignVariable{
        "`MASTER_ADDR`, `MASTER_PORT`",
        "Where rank 0 of a PyTorch program listens. The port is free when the job starts; libcol never uses "
        "it."},
    ForeignVariable{"`TORCHELASTIC_RESTART_COUNT`, `TORCHELASTIC_MAX_RESTARTS`",
                    "How often the job has been restarted, and how often it may be."},
    ForeignVariable{"`TORCHELASTIC_RUN_ID`", "As `COL_JOB_ID`."},
    ForeignVariable{"`TORCHELASTIC_USE_AGENT_STORE`", "`False`: colrun runs no store for PyTorch, rank 0 does."},
    ForeignVariable{"`TORCHELASTIC_ERROR_FILE`", "Where PyTorch's `record` decorator writes a rank's exception."},
    ForeignVariable{
        "`OMP_NUM_THREADS`",
        "Allowed CPUs divided by the ranks on this host, at least 1. Set only when it is unset; colrun says so "
        "once if processors are left over."},
    ForeignVariable{"`PMI_RANK`, `PMI_SIZE`, `PMI_FD`",
                    "As `COL_RANK` and `COL_WORLD_SIZE`, and the number of an open socket: a program of MPICH's family "
                    "meets the others through it (PMI-1). A program that is to be alone: `env -u PMI_FD ./program`."},
};

std::string cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

void append_rows(std::string& page, std::span<const ForeignVariable> variables) {
  for (const ForeignVariable& variable : variables) {
    page += fmt::format("| {} | {} |\n", variable.names, cell(variable.meaning));
  }
}

}  // namespace

std::span<const Variable> table() noexcept {
  return kTable;
}

std::string markdown() {
  std::string page =
      "# Environment variables\n"
      "\n"
      "libcol reads the variables of the first four tables and no others. An empty value counts as unset. A value "
      "that\n"
      "is not valid is an error of code `invalid_argument` that names the variable, what it holds and what it may\n"
      "hold, with two exceptions. `COL_LOG` and `COL_LOG_FILE` only warn: a log must not end a job.\n"
      "A variable that is none of these but has nearly the name of one (`COL_TIMEOT`) is warned about by rank 0.\n"
      "`COL_SOCKET_IFNAME` is looked at only when the ranks are on several hosts; one that names no interface that\n"
      "is up is `unavailable`.\n"
      "\n"
      "`colrun` sets those marked *colrun* for every rank, and overwrites what was there. A program that is started\n"
      "in another way may set them itself. Without `COL_RANK`, the variables of other launchers are looked at.\n"
      "\n"
      "| variable | values | when unset | meaning | set by |\n"
      "|---|---|---|---|---|\n";
  for (const Variable& variable : kTable) {
    page += fmt::format("| `{}` | {} | {} | {} | {} |\n", variable.name, cell(variable.values), cell(variable.fallback),
                        cell(variable.meaning), variable.set_by_colrun ? "colrun" : "you");
  }
  page +=
      "\n"
      "## Read when another launcher has started the program\n"
      "\n"
      "When `COL_RANK` is not set, `col::init()` believes the first complete set of these, in this order, and is a\n"
      "world of one when there is none. A set that lacks a part is skipped.\n"
      "\n"
      "| variable | launcher | meaning |\n"
      "|---|---|---|\n";
  for (const LauncherVariable& variable : kLauncherVariables) {
    page += fmt::format("| `{}` | {} | {} |\n", variable.name, variable.launcher, cell(variable.meaning));
  }
  page +=
      "\n"
      "## Read by the nccl backend\n"
      "\n"
      "NCCL reads many more by itself.\n"
      "\n"
      "| variable | meaning |\n"
      "|---|---|\n";
  for (const EngineVariable& variable : kNcclVariables) {
    page += fmt::format("| `{}` | {} |\n", variable.name, cell(variable.meaning));
  }
  page +=
      "\n"
      "## Read by the ucx backend\n"
      "\n"
      "UCX reads many more by itself: `ucx_info -cf` lists them.\n"
      "\n"
      "| variable | meaning |\n"
      "|---|---|\n";
  for (const EngineVariable& variable : kUcxVariables) {
    page += fmt::format("| `{}` | {} |\n", variable.name, cell(variable.meaning));
  }
  page +=
      "\n"
      "## Read by colrun\n"
      "\n"
      "| variable | meaning |\n"
      "|---|---|\n";
  append_rows(page, kLauncherTable);
  page +=
      "\n"
      "## Set by colrun for programs of PyTorch and MPICH\n"
      "\n"
      "These let a program written for `torchrun`, or one of MPICH, run under `colrun` as it is. They too are always "
      "overwritten, but for\n"
      "`OMP_NUM_THREADS`.\n"
      "\n"
      "| variable | meaning |\n"
      "|---|---|\n";
  append_rows(page, kForeignTable);
  page +=
      "\n"
      "This page is generated from `src/lib/core/env.cpp` by `scripts/dev environment`.\n";
  return page;
}

std::span<const LauncherVariable> launcher_table() noexcept {
  return kLauncherVariables;
}

std::vector<std::string> misspelt() {
  constexpr std::string_view kPrefix = "COL_";
  std::vector<std::string_view> known(kOfColrunAlone.begin(), kOfColrunAlone.end());
  for (const Variable& variable : kTable) known.push_back(variable.name);
  for (std::string_view& name : known) name.remove_prefix(kPrefix.size());  // which would make all names alike
  std::vector<std::string> warnings;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    std::string_view name(*entry);
    name = name.substr(0, name.find('='));
    if (!name.starts_with(kPrefix)) continue;
    name.remove_prefix(kPrefix.size());
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    if (const std::string_view meant = nearest_name(name, known); !meant.empty())
      warnings.push_back(
          fmt::format("{0}{1} is set, but nothing reads it; did you mean {0}{2}?", kPrefix, name, meant));
  }
  return warnings;
}

std::optional<std::string> get(std::string_view name) {
  const auto named = [&](const auto& variable) { return variable.name == name; };
  if (std::none_of(kTable.begin(), kTable.end(), named) &&
      std::none_of(kLauncherVariables.begin(), kLauncherVariables.end(), named) &&
      std::none_of(kNcclVariables.begin(), kNcclVariables.end(), named) &&
      std::none_of(kUcxVariables.begin(), kUcxVariables.end(), named)) {
    throw Error(ErrorCode::internal,
                fmt::format("{} is read but not in the table of env.cpp; please report this as a bug in col", name));
  }
  if (Scheduler* const simulated = scheduler()) return simulated->environment(std::string(name));
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::int64_t parse_int(std::string_view name, std::string_view text, std::int64_t least, std::int64_t most) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [parsed_end, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && parsed_end == end && least <= value && value <= most) return value;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("{}='{}' is not a whole number from {} to {}; correct it, or unset it", name, text, least, most));
}

std::optional<std::int64_t> get_int(std::string_view name, std::int64_t least, std::int64_t most) {
  const auto text = get(name);
  if (!text) return std::nullopt;
  return parse_int(name, *text, least, most);
}

std::optional<Duration> get_duration(std::string_view name) {
  const auto text = get(name);
  if (!text) return std::nullopt;
  if (const auto duration = parse_duration(*text)) return duration;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}='{}' is not a duration above zero; write 500ms, 30s, 5m, 2h or seconds, or unset it",
                          name, *text));
}

}  // namespace col::core::env

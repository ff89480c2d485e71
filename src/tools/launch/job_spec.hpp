// What a job is: what is to run, where, with what environment, and when it is to end.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "launch/output/output_spec.hpp"
#include "launch/place/binding_spec.hpp"

namespace col::launch {

using Milliseconds = std::chrono::milliseconds;

inline constexpr int kMaxRanks = 4096;  // of one node
inline constexpr int kMaxNodes = 65'536;

// One part of "colrun -n 1 a : -n 2 b". Ranks are numbered node by node, and on each node through the parts in order.
struct Program {
  std::vector<std::string> command;           // the program and its arguments; not empty
  int ranks = 1;                              // on each node; 1 … kMaxRanks
  std::vector<std::string> environment = {};  // "NAME=value" for the ranks of this part alone
};

// Which rank's exit code is the job's when several have failed.
enum class ExitPolicy { first, max, rank0 };

struct LifecycleSpec {
  std::optional<Milliseconds> timeout;        // of the whole job; then exit code 124
  std::optional<Milliseconds> start_timeout;  // until all ranks have been started, on all nodes; then 125
  std::optional<Milliseconds> exit_timeout;   // from the first rank's good end to the last one's; then 124
  Milliseconds grace{5'000};                  // from SIGTERM to SIGKILL when the launcher ends the job
  Milliseconds term_grace{25'000};            // the same when somebody else's SIGTERM, SIGHUP or SIGQUIT does
  int max_restarts = 0;
  bool keep_going = false;  // a rank that fails does not end the others
  ExitPolicy exit_policy = ExitPolicy::first;
};

struct EnvironmentSpec {
  std::vector<std::string> set = {};       // "NAME=value"; the last one of a name counts
  std::vector<std::string> remove = {};    // names of variables that ranks do not get; may end in '*'
  std::vector<std::string> per_rank = {};  // "NAME=pattern", the pattern as in rank_pattern.hpp
  bool mpi_names = false;                  // OMPI_COMM_WORLD_* and PMI_* as well (--compat mpi)
};

struct HostSpec {
  std::string name;               // as ssh takes it: "node7", "ada@node7"
  std::optional<int> slots = {};  // ranks on that host; not given: as many as -n says
  int node_rank = 0;              // its place in the list
};

// Who knows the other nodes when neither --nnodes nor --host says.
enum class Scheduler { automatic, none, slurm, kubernetes };

struct NodesSpec {
  int min_nodes = 1;  // --nnodes MIN:MAX
  int max_nodes = 1;
  Scheduler scheduler = Scheduler::automatic;
  std::optional<int> node_rank = {};  // not given: by order of arrival
  std::string endpoint = {};          // "host:port", where the nodes meet; empty: one node, or `hosts`
  std::string rendezvous_id = {};     // nodes of another id are refused
  Milliseconds rendezvous_timeout{600'000};
  std::vector<HostSpec> hosts = {};  // other nodes are started by ssh; empty: each node's colrun is by somebody else
  std::vector<std::string> ssh = {"ssh"};  // that command and its options
};

struct Injection {
  enum class Kind { kill, stop, slow } kind = Kind::kill;
  int rank = 0;
  Milliseconds at{0};        // from the start of the rank
  Milliseconds duration{0};  // of a stop; 0: for good
  double factor = 1;         // of a slowdown: 4 lets the rank run for a quarter of the time
};

struct InspectSpec {
  bool dry_run = false;      // say what would be started, start nothing
  bool display_map = false;  // say it, and start
  bool report_bindings = false;
  bool print_environment = false;  // of each rank, then start nothing
  bool report = false;             // times and memory of each rank at the end of a job that went well, too
  bool stacks_on_timeout = false;
  bool stacks_on_failure = false;
  std::string json_path = {};              // the final report as JSON goes there; "-": stdout; empty: nowhere
  std::vector<std::string> debugger = {};  // put before the command of `debug_ranks`: {"gdb", "--args"}
  std::vector<int> debug_ranks = {};
};

struct JobSpec {
  std::vector<Program> programs;  // not empty
  OutputSpec output = {};
  InputSpec input = {};
  LifecycleSpec lifecycle = {};
  EnvironmentSpec environment = {};
  BindingSpec binding = {};
  NodesSpec nodes = {};
  InspectSpec inspect = {};
  std::vector<Injection> injections = {};

  std::string tool = "colrun";                 // who speaks in messages: "colrun: …"
  std::vector<std::string> command_line = {};  // that repeats this run, for the report

  // The ranks' input (`input`) is read from here; -1 gives them /dev/null. run() gives the descriptor away: in the
  // caller it is /dev/null afterwards, so that a writer at its other end notices when its reader is gone.
  int stdin_fd = 0;
  int stdout_fd = 1;
  int stderr_fd = 2;
  // Descriptors of 3 and above that ranks inherit (a shell's `<(…)`), sorted. All others are closed in them.
  std::vector<int> keep_fds = {};
  // Where argv lies: the watcher writes its own name there, so that `pkill -f` of the job does not hit it. May be
  // empty.
  std::span<char> title = {};

  int local_ranks() const {
    int sum = 0;
    for (const Program& program : programs) sum += program.ranks;
    return sum;
  }
};

}  // namespace col::launch

// The description of a job: what runs, where, in what environment, and when it must end.
//
// fields() of each struct are the parts that a launcher on another host needs. They begin with the names of all
// members: if a member is added, this does not compile until somebody has decided whether it travels or stays.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "json/json_fields.hpp"

namespace col::launch {

// Which processors and devices each rank of a node should use.
struct BindingSpec {
  // automatic: equal shares of the node's cores, where that does no harm.
  enum class To { none, core, numa, list, automatic } to = To::automatic;
  // With To::list: the processors of local rank 0, 1, …, with the numbers of the operating system. If there are more
  // ranks, the list starts again.
  std::vector<std::vector<int>> lists = {};
  // How ranks are distributed over NUMA nodes: core fills the first node, then the next one; numa takes turns.
  enum class MapBy { core, numa } map_by = MapBy::core;
  int gpus_per_rank = 0;  // 0: CUDA_VISIBLE_DEVICES is not changed
};

template <class Visit>
void fields(BindingSpec& binding, Visit& visit) {
  auto& [to, lists, map_by, gpus_per_rank] = binding;
  visit("to", to, core::Numbered{BindingSpec::To::automatic});
  visit("lists", lists);
  visit("map_by", map_by, core::Numbered{BindingSpec::MapBy::numa});
  visit("gpus_per_rank", gpus_per_rank);
}

// How text without a newline passes through a launcher before its newline comes.
enum class Unfinished {
  held,    // not at all, but for very long lines
  shown,   // as soon as its rank is silent: a prompt on a terminal
  passed,  // at once: nobody else writes there
};

// Where the ranks' output goes. Patterns are those of assignment.hpp.
struct OutputSpec {
  std::string label = {};         // pattern at the start of every line: "[%r] "; empty: none
  bool timestamps = false;        // every line begins with the time at which its first byte was read (before the label)
  std::string file_pattern = {};  // pattern of the file for each stream of each rank; empty: to the console
  bool tee = false;               // with a file pattern: to the console too
  std::vector<int> console_ranks = {};  // global ranks whose output the console shows, sorted; empty: all
  bool merge = false;                   // stderr joins stdout where it is written, so their order is kept
  bool quiet = false;                   // nothing is said of what goes as planned
  bool pty = false;                     // stdout and stderr are a pseudo-terminal (and therefore merged)
  // The kind of the user's stdout and stderr decides, also for launchers on other hosts.
  Unfinished out = Unfinished::held;
  Unfinished err = Unfinished::held;
  bool joined = false;  // the launcher that started this one joins the lines with those of other ranks
};

template <class Visit>
void fields(OutputSpec& output, Visit& visit) {
  auto& [label, timestamps, file_pattern, tee, console_ranks, merge, quiet, pty, out, err, joined] = output;
  visit("label", label);
  visit("timestamps", timestamps);
  visit("file", file_pattern);
  visit("tee", tee);
  visit("console_ranks", console_ranks);
  visit("merge", merge);
  visit("quiet", quiet);
  visit("pty", pty);
  visit("out", out, core::Numbered{Unfinished::passed});
  visit("err", err, core::Numbered{Unfinished::passed});
  visit("joined", joined);
}

struct InputSpec {
  enum class To { rank, all, none } to = To::rank;
  int rank = 0;  // global
};

template <class Visit>
void fields(InputSpec& input, Visit& visit) {
  auto& [to, rank] = input;
  visit("to", to, core::Numbered{InputSpec::To::none});
  visit("rank", rank);
}

using Milliseconds = std::chrono::milliseconds;

inline constexpr int kMaxRanks = 4096;  // on one node
inline constexpr int kMaxNodes = 65'536;

// One part of "colrun -n 1 a : -n 2 b". Ranks are numbered node by node, and on each node through the parts in order.
struct Program {
  std::vector<std::string> command;           // the program and its arguments; not empty
  int ranks = 1;                              // on each node; 1 … kMaxRanks
  std::vector<std::string> environment = {};  // "NAME=value" only for the ranks of this part
};

template <class Visit>
void fields(Program& program, Visit& visit) {
  auto& [command, ranks, environment] = program;
  visit("command", command);
  visit("ranks", ranks);
  visit("environment", environment);
}

// Which rank's exit code becomes the job's if several ranks have failed.
enum class ExitPolicy { first, max, rank0 };

struct LifecycleSpec {
  std::optional<Milliseconds> timeout;        // limit for the whole job; then exit code 124
  std::optional<Milliseconds> start_timeout;  // limit for starting all ranks on all nodes; then 125
  std::optional<Milliseconds> exit_timeout;   // limit from the first rank's successful end to the last one's; then 124
  Milliseconds grace{5'000};                  // from SIGTERM to SIGKILL when the launcher ends the job
  Milliseconds term_grace{25'000};            // the same if an outside SIGTERM, SIGHUP or SIGQUIT ends it
  int max_restarts = 0;
  bool keep_going = false;  // a rank that fails does not end the others
  ExitPolicy exit_policy = ExitPolicy::first;
  int spares = 0;     // processes of each node that sleep until the ranks take them in; implies keep_going
  int min_ranks = 0;  // --elastic MIN:MAX, which implies keep_going; 0: not given
  int max_ranks = 0;

  bool is_elastic() const { return min_ranks > 0; }
  // The ranks go on in epochs: without those that are lost, and with others in their places.
  bool has_epochs() const { return spares > 0 || is_elastic(); }
  // For all ranks. In a job with epochs, single places are started again.
  int restarts_of_all() const { return has_epochs() ? 0 : max_restarts; }
};

template <class Visit>
void fields(LifecycleSpec& lifecycle, Visit& visit) {
  auto& [timeout, start_timeout, exit_timeout, grace, term_grace, max_restarts, keep_going, exit_policy, spares,
         min_ranks, max_ranks] = lifecycle;
  visit("timeout_ms", timeout);
  visit("exit_timeout_ms", exit_timeout);
  visit("grace_ms", grace);
  visit("term_grace_ms", term_grace);
  visit("max_restarts", max_restarts);
  visit("keep_going", keep_going);
  visit("spares", spares);
  visit("min_ranks", min_ranks);
  visit("max_ranks", max_ranks);
  core::stays(start_timeout, exit_policy);  // the meeting's
}

struct EnvironmentSpec {
  std::vector<std::string> set = {};       // "NAME=value"; the last one of a name counts
  std::vector<std::string> remove = {};    // names of variables that ranks do not get; a name may end in '*'
  std::vector<std::string> per_rank = {};  // "NAME=pattern", the pattern as in assignment.hpp
  bool mpi_names = false;                  // sets OMPI_COMM_WORLD_* and PMI_* too (--compat mpi)
  bool pmi = false;                        // serves PMI-1, so that MPI programs form a world
};

template <class Visit>
void fields(EnvironmentSpec& environment, Visit& visit) {
  auto& [set, remove, per_rank, mpi_names, pmi] = environment;
  visit("set", set);
  visit("remove", remove);
  visit("per_rank", per_rank);
  visit("mpi_names", mpi_names);
  visit("pmi", pmi);
}

struct HostSpec {
  std::string name;               // as ssh takes it: "node7", "ada@node7"
  std::optional<int> slots = {};  // ranks on that host; not given: as -n says
  int node_rank = 0;              // its place in the list
};

// Which scheduler knows the other nodes if neither --nnodes nor --host says. pbs and lsf list hosts: they become
// NodesSpec::hosts.
enum class Scheduler { automatic, none, slurm, kubernetes, pbs, lsf };

struct NodesSpec {
  int min_nodes = 1;  // --nnodes MIN:MAX
  int max_nodes = 1;
  Scheduler scheduler = Scheduler::automatic;
  std::optional<int> node_rank = {};  // not given: by order of arrival
  std::string endpoint = {};          // "host:port", where the nodes meet; empty: one node, or `hosts`
  std::string rendezvous_id = {};     // nodes of another id are refused
  Milliseconds rendezvous_timeout{600'000};
  std::vector<HostSpec> hosts = {};  // other nodes that ssh starts; empty: somebody else starts each node's colrun
  std::vector<std::string> ssh = {"ssh"};  // the ssh command and its options
};

struct Injection {
  enum class Kind { kill, stop, slow } kind = Kind::kill;
  int rank = 0;
  Milliseconds at{0};        // from the start of the rank
  Milliseconds duration{0};  // of a stop; 0: forever
  double factor = 1;         // of a slowdown: with 4, the rank runs for a quarter of the time
};

template <class Visit>
void fields(Injection& injection, Visit& visit) {
  auto& [kind, rank, at, duration, factor] = injection;
  visit("kind", kind, core::Numbered{Injection::Kind::slow});
  visit("rank", rank);
  visit("at_ms", at);
  visit("duration_ms", duration);
  visit("factor", factor);
}

struct InspectSpec {
  bool dry_run = false;      // say what would be started, and start nothing
  bool display_map = false;  // say what is started, and start it
  bool report_bindings = false;
  bool print_environment = false;  // of each rank, then start nothing
  bool report = false;             // print times and memory of each rank at the end, also if the job went well
  bool times = false;              // follow the calls of the ranks for the report: set with `report` and `json_path`
  bool watch = false;              // show a live view meanwhile
  bool stacks_on_timeout = false;
  bool stacks_on_failure = false;
  std::optional<Milliseconds> report_hang = {};  // say who waits for whom when a rank has waited for so long, and again
  std::string json_path = {};                    // file for the final report as JSON; "-": stdout; empty: none
  std::string trace_path = {};                   // file for the timeline of all ranks; empty: none
  std::string metrics_host = {};  // where a page of figures is served; "*": all addresses of this host; empty: nowhere
  int metrics_port = 0;
  std::uint64_t trace_bytes = std::uint64_t{256} << 20;  // that file's most
  std::vector<std::string> debugger = {};                // put before the command of `debug_ranks`: {"gdb", "--args"}
  std::vector<int> debug_ranks = {};
};

template <class Visit>
void fields(InspectSpec& inspect, Visit& visit) {
  auto& [dry_run, display_map, report_bindings, print_environment, report, times, watch, stacks_on_timeout,
         stacks_on_failure, report_hang, json_path, trace_path, metrics_host, metrics_port, trace_bytes, debugger,
         debug_ranks] = inspect;
  visit("report_bindings", report_bindings);
  visit("stacks_on_timeout", stacks_on_timeout);
  visit("stacks_on_failure", stacks_on_failure);
  visit("report_hang_ms", report_hang);
  visit("trace_path", trace_path);
  visit("trace_bytes", trace_bytes);
  visit("debugger", debugger);
  visit("debug_ranks", debug_ranks);
  visit("times", times);
  core::stays(dry_run, display_map, print_environment, report, watch, json_path, metrics_host, metrics_port);
}

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

  std::string tool = "colrun";                 // the name in messages: "colrun: …"
  std::vector<std::string> command_line = {};  // repeats this run, for the report

  // The source of the ranks' input (`input`); -1 gives them /dev/null. run() gives the descriptor away: afterwards it
  // is /dev/null in the caller, so that a writer at its other end notices when its reader is gone.
  int stdin_fd = 0;
  int stdout_fd = 1;
  int stderr_fd = 2;
  // Descriptors of 3 and above that ranks inherit (a shell's `<(…)`), sorted. All others are closed in the ranks.
  std::vector<int> keep_fds = {};
  // The memory of argv: the watcher writes its own name there, so that `pkill -f` for the job does not hit the watcher.
  // May be empty.
  std::span<char> title = {};

  int local_ranks() const {
    int sum = 0;
    for (const Program& program : programs) sum += program.ranks;
    return sum;
  }
  // Places of processes: of the ranks and, behind them, of the spares.
  int local_places() const { return local_ranks() > 0 ? local_ranks() + lifecycle.spares : 0; }
};

template <class Visit>
void fields(JobSpec& job, Visit& visit) {
  auto& [programs, output, input, lifecycle, environment, binding, nodes, inspect, injections, tool, command_line,
         stdin_fd, stdout_fd, stderr_fd, keep_fds, title] = job;
  visit("programs", programs);
  visit("output", output);
  visit("input", input);
  visit("lifecycle", lifecycle);
  visit("environment", environment);
  visit("binding", binding);
  visit("inspect", inspect);
  visit("injections", injections);
  visit("tool", tool);
  core::stays(nodes, command_line, stdin_fd, stdout_fd, stderr_fd, keep_fds, title);
}

}  // namespace col::launch

// Options that are right by themselves, but cannot be used together.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "colrun/option_values.hpp"
#include "colrun/settings.hpp"

namespace col::colrun {
namespace {

using launch::JobSpec;
using launch::NodesSpec;
using launch::Scheduler;

// As the user wrote it; the option must have been given.
const std::string& said(const Values& values, std::string_view option) {
  return values.find(option)->said_as;
}

// A scheduler's variables say how many nodes there are.
bool scheduler_knows_nodes(const NodesSpec& nodes, const Surroundings& surroundings) {
  if (nodes.scheduler != Scheduler::automatic) return nodes.scheduler != Scheduler::none;
  const bool slurm = surroundings.variable("SLURM_JOB_ID") && surroundings.variable("SLURM_STEP_ID");
  return slurm || surroundings.variable("JOB_COMPLETION_INDEX").has_value();
}

void check_standalone(const Values& values) {
  if (!values.is_on("--standalone")) return;
  const Given* nodes = values.find("--nnodes");
  const Given* other = nodes != nullptr && nodes->text != "1" && nodes->text != "1:1" ? nodes : nullptr;
  if (other == nullptr) other = values.first_of({"--host", "--hostfile"});
  const Given* scheduler = values.find("--scheduler");
  if (other == nullptr && scheduler != nullptr && scheduler->text != "none") other = scheduler;
  if (other != nullptr)
    throw UsageError("{} and {} do not go together: the one means one node, the other more; leave one out",
                     said(values, "--standalone"), other->said_as);
}

// Every place where nodes meet may be said once.
void check_meeting_place(const Values& values) {
  const Given* hosts = values.first_of({"--host", "--hostfile"});
  const Given* endpoint = values.find("--rdzv-endpoint");
  const Given* master = values.first_of({"--master-addr", "--master-port"});
  if (values.has("--host") && values.has("--hostfile"))
    throw UsageError("{} and {} both say which hosts; give one of them", said(values, "--host"),
                     said(values, "--hostfile"));
  if (endpoint != nullptr && values.has("--master-addr"))
    throw UsageError("{} and {} both say where the nodes meet; give one of them", endpoint->said_as,
                     said(values, "--master-addr"));
  if (hosts == nullptr) return;
  if (endpoint == nullptr) endpoint = master;
  if (endpoint != nullptr)
    throw UsageError(
        "{} starts colrun on the other hosts, {} is for nodes on which somebody else starts it; give one of them",
        hosts->said_as, endpoint->said_as);
  if (values.has("--node-rank"))
    throw UsageError("with {}, nodes are numbered in the order of the hosts; leave {} out", hosts->said_as,
                     said(values, "--node-rank"));
}

void check_hosts(const Values& values, const JobSpec& spec) {
  const Given* nodes = values.find("--nnodes");
  const std::size_t count = spec.nodes.hosts.size();
  const auto counted = static_cast<std::size_t>(spec.nodes.min_nodes);
  if (nodes != nullptr && (counted != count || spec.nodes.min_nodes != spec.nodes.max_nodes))
    throw UsageError("{} {} and {} hosts do not agree; leave {} out", nodes->said_as, nodes->text, count,
                     nodes->said_as);
  const auto has_slots = [](const launch::HostSpec& host) { return host.slots.has_value(); };
  const bool any = std::ranges::any_of(spec.nodes.hosts, has_slots);
  if (any && spec.programs.size() > 1)
    throw UsageError(
        "slots of hosts cannot be divided between several programs; say by -n how many of each run on every host");
  const bool all = std::ranges::all_of(spec.nodes.hosts, has_slots);
  const Given* ranks = values.find("--np");
  if (!all || ranks == nullptr) return;
  // Users of mpirun give the sum as well.
  int sum = 0;
  for (const launch::HostSpec& host : spec.nodes.hosts) sum += *host.slots;
  if (ranks->text != fmt::format("{}", sum))
    throw UsageError("{} {} and the slots of the hosts ({} in all) do not agree; leave {} out", ranks->said_as,
                     ranks->text, sum, ranks->said_as);
}

void check_master(const Values& values, const NodesSpec& nodes) {
  if (nodes.max_nodes == 1 || !nodes.endpoint.empty()) return;
  const Given* master = values.first_of({"--master-addr", "--master-port"});
  if (master != nullptr)
    throw UsageError("{} is half of a place to meet; add {}", master->said_as,
                     values.has("--master-addr") ? "--master-port" : "--master-addr");
}

void check_nodes(const Values& values, const Surroundings& surroundings, const JobSpec& spec) {
  check_standalone(values);
  check_meeting_place(values);
  const NodesSpec& nodes = spec.nodes;
  if (!nodes.hosts.empty()) return check_hosts(values, spec);
  check_master(values, nodes);
  const bool known = scheduler_knows_nodes(nodes, surroundings);
  const Given* count = values.find("--nnodes");
  if (nodes.max_nodes > 1 && nodes.endpoint.empty() && !known)
    throw UsageError(
        "{} {} needs a place where the nodes meet: add --rdzv-endpoint HOST:PORT, the same on every node, or write "
        "--host A,B to start them over ssh",
        count->said_as, count->text);
  const auto endpoint = parse_endpoint(nodes.endpoint);
  const bool any_port = endpoint && endpoint->port == 0;
  if (values.has("--rdzv-endpoint") && count == nullptr && !known && !any_port && !values.is_on("--standalone"))
    throw UsageError("{} says where nodes meet, but not how many; add --nnodes N", said(values, "--rdzv-endpoint"));
  if (any_port && nodes.max_nodes > 1)
    throw UsageError("the nodes of a job cannot know which port 0 will be; write one that is free on {}",
                     endpoint->host);
  if (!nodes.node_rank) return;
  if (nodes.min_nodes != nodes.max_nodes)
    throw UsageError("nodes that may come and go are numbered in the order of arrival; leave {} out",
                     said(values, "--node-rank"));
  if (*nodes.node_rank >= nodes.max_nodes && (count != nullptr || !known))
    throw UsageError("{} {} is none of {} {} (they are numbered from 0); change it, or --nnodes",
                     said(values, "--node-rank"), *nodes.node_rank, nodes.max_nodes,
                     nodes.max_nodes == 1 ? "node" : "nodes");
}

// How many ranks the job has, where that is known before the nodes have met.
std::optional<int> world_size(const JobSpec& spec, const Surroundings& surroundings) {
  if (!spec.nodes.hosts.empty()) {
    int sum = 0;
    for (const launch::HostSpec& host : spec.nodes.hosts) sum += host.slots.value_or(spec.local_ranks());
    return sum;
  }
  const bool alone = spec.nodes.max_nodes == 1 && !scheduler_knows_nodes(spec.nodes, surroundings);
  return alone ? std::optional(spec.local_ranks()) : std::nullopt;
}

void check_rank(const Values& values, std::string_view option, int rank, int world) {
  if (rank < world) return;
  const Given* given = values.find(option);
  throw UsageError("{} names rank {}, but the job has {} {} (numbered from 0); {}",
                   given == nullptr ? option : given->said_as, rank, world, world == 1 ? "rank" : "ranks",
                   "name one of them, or start more with -n");
}

void check_ranks(const Values& values, const JobSpec& spec, int world) {
  for (const int rank : spec.output.console_ranks) check_rank(values, "--ranks", rank, world);
  if (spec.input.to == launch::InputSpec::To::rank && values.has("--stdin"))
    check_rank(values, "--stdin", spec.input.rank, world);
  for (const int rank : spec.inspect.debug_ranks) check_rank(values, "--debug-ranks", rank, world);
  for (const launch::Injection& injection : spec.injections) check_rank(values, "--inject", injection.rank, world);
}

// Whether the names that `pattern` gives differ from rank to rank.
bool is_unique(const std::string& pattern, bool one_node) {
  bool rank = false, local_rank = false, node = false;
  for (std::size_t i = 0; i + 1 < pattern.size(); ++i) {
    if (pattern[i] != '%') continue;
    const char letter = pattern[++i];
    rank = rank || letter == 'r' || letter == 'R';
    local_rank = local_rank || letter == 'l';
    node = node || letter == 'n' || letter == 'h';
  }
  return rank || (local_rank && (one_node || node));
}

void check_output(const Values& values, const JobSpec& spec, std::optional<int> world) {
  const launch::OutputSpec& output = spec.output;
  if (output.tee && output.file_pattern.empty())
    throw UsageError("{} needs --output: it says that output goes to the console as well as to files",
                     said(values, "--tee"));
  if (!output.console_ranks.empty() && !output.file_pattern.empty() && !output.tee)
    throw UsageError(
        "{} chooses what the console shows, and with --output nothing goes there; add --tee, or leave it out",
        said(values, "--ranks"));
  const bool one_node = spec.nodes.max_nodes == 1 && spec.nodes.hosts.size() <= 1 && world.has_value();
  if (!output.file_pattern.empty() && world != 1 && !is_unique(output.file_pattern, one_node))
    throw UsageError("{} file={}: several ranks would write to one file; put %r{} into its name",
                     said(values, "--output"), output.file_pattern, one_node ? "" : " (or %h and %l)");
}

// Jobs whose ranks go on in epochs.
void check_epochs(const Values& values, const JobSpec& spec) {
  const launch::LifecycleSpec& life = spec.lifecycle;
  const std::string& option = said(values, life.is_elastic() ? "--elastic" : "--spares");
  if (spec.programs.size() > 1)
    throw UsageError("{} is for one program: nobody knows which of several a process would have to be; start one",
                     option);
  if (spec.environment.mpi_names)
    throw UsageError("{} and {} do not go together: MPI has no name for a process that has no rank yet; leave one out",
                     option, said(values, "--compat"));
  if (!life.is_elastic()) {
    if (life.max_restarts > 0)
      throw UsageError("{} starts all ranks again, and {} lets them go on; for single ranks, add --elastic MIN:MAX",
                       said(values, "--max-restarts"), option);
    return;
  }
  if (spec.nodes.max_nodes > 1 || spec.nodes.hosts.size() > 1)
    throw UsageError(
        "{} is for one node so far; on several, {} N gives each node processes that can take the place of a "
        "rank",
        option, "--spares");
  const int ranks = spec.local_ranks();
  if (ranks < life.min_ranks || ranks > life.max_ranks)
    throw UsageError("{} {}:{} does not have the {} {} that the job begins with in it; change it, or -n", option,
                     life.min_ranks, life.max_ranks, ranks, ranks == 1 ? "rank" : "ranks");
}

void check_rest(const Values& values, const JobSpec& spec) {
  using To = launch::BindingSpec::To;
  if (values.has("--debug-ranks") && !values.has("--debugger"))
    throw UsageError("{} needs a debugger; add --debugger 'gdb --args'", said(values, "--debug-ranks"));
  if (values.has("--map-by") && spec.binding.to != To::core && spec.binding.to != To::numa)
    throw UsageError(
        "{} says how ranks are bound to cores or NUMA nodes, but they {}; add --bind-to core or --bind-to numa",
        said(values, "--map-by"),
        spec.binding.to == To::list   ? "are bound by a list"
        : spec.binding.to == To::none ? "are not bound"
                                      : "get equal shares");
  if (spec.lifecycle.has_epochs()) return check_epochs(values, spec);
  if (spec.lifecycle.keep_going && spec.lifecycle.max_restarts > 0)
    throw UsageError("{} lets the others run on when a rank fails, {} starts all of them again; give one of them",
                     said(values, "--keep-going"), said(values, "--max-restarts"));
}

void check_number_of_ranks(const JobSpec& spec) {
  if (spec.local_ranks() > launch::kMaxRanks)
    throw UsageError("the programs have {} ranks together, and one node may have {}; ask for fewer with -n",
                     spec.local_ranks(), launch::kMaxRanks);
  if (spec.local_places() > launch::kMaxRanks)
    throw UsageError("{} ranks and {} spares are more than one node may have ({}); ask for fewer", spec.local_ranks(),
                     spec.lifecycle.spares, launch::kMaxRanks);
}

}  // namespace

void check_conflicts(const Values& values, const Surroundings& surroundings, const JobSpec& spec) {
  check_nodes(values, surroundings, spec);
  check_rest(values, spec);
  check_number_of_ranks(spec);
  const std::optional<int> world = world_size(spec, surroundings);
  if (world == 1 && spec.lifecycle.has_epochs())
    throw UsageError(
        "{} needs a job of two ranks or more: one alone has nobody who goes on without it; start more "
        "with -n",
        said(values, spec.lifecycle.is_elastic() ? "--elastic" : "--spares"));
  check_output(values, spec, world);
  if (world) check_ranks(values, spec, *world);
}

}  // namespace col::colrun

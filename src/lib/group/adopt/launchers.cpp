#include "group/adopt/launchers.hpp"

#include <algorithm>
#include <charconv>
#include <climits>
#include <initializer_list>
#include <system_error>

#include <fmt/format.h>

#include <col/error.hpp>

#include "core/env.hpp"

namespace col::group::adopt {
namespace {

constexpr int kMaxRanks = 1 << 24;

// One launcher's variables; remembers the numbers that were read.
class Variables {
 public:
  explicit Variables(const Lookup& lookup) : lookup_(lookup) {}

  bool has_all(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names) {
      if (!lookup_(name)) return false;
    }
    return true;
  }
  std::string text(std::string_view name) const { return lookup_(name).value_or(""); }
  std::optional<int> number(std::string_view name, int least, int most) {
    const auto value = lookup_(name);
    if (!value) return std::nullopt;
    const auto parsed = static_cast<int>(core::env::parse_int(name, *value, least, most));
    believed_ += fmt::format("{}{}={}", believed_.empty() ? "" : ", ", name, parsed);
    return parsed;
  }
  std::optional<int> size(std::string_view name) { return number(name, 1, kMaxRanks); }
  // A number that counts from 0 and must be below `size`, which came from `size_name`.
  std::optional<int> index(std::string_view name, int size, std::string_view size_name) {
    const auto value = number(name, 0, kMaxRanks);
    if (value && *value >= size)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}={} is not below {}={}; correct what sets them, or unset them", name, *value,
                              size_name, size));
    return value;
  }
  const std::string& believed() const { return believed_; }

 private:
  const Lookup& lookup_;
  std::string believed_;
};

std::string say(std::string_view name, int value) {
  return fmt::format("{}={}", name, value);
}

// Checks a number of local ranks against that of the world, and records if it means several hosts.
void set_local_size(LaunchedRank& own, int local_size, std::string_view local_name, std::string_view world_name) {
  if (local_size > own.world_size)
    throw Error(ErrorCode::invalid_argument, fmt::format("{}={} is above {}={}; correct what sets them, or unset them",
                                                         local_name, local_size, world_name, own.world_size));
  own.local_world_size = local_size;
  if (local_size < own.world_size && own.several_hosts.empty())
    own.several_hosts = fmt::format("{} of {}", say(local_name, local_size), say(world_name, own.world_size));
}

// mpirun of either family runs its daemons as a step of Slurm's, and its ranks inherit what Slurm told the daemon.
bool is_below_mpirun(const Variables& variables) {
  return variables.has_all({"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}) ||
         variables.has_all({"PMI_RANK", "MPI_LOCALNRANKS"});
}

}  // namespace

std::optional<LaunchedRank> from_torchrun(const Lookup& lookup) {
  Variables variables(lookup);
  if (!variables.has_all({"RANK", "WORLD_SIZE", "LOCAL_RANK"})) return std::nullopt;
  LaunchedRank own;
  own.launcher = "torchrun";
  own.world_size = *variables.size("WORLD_SIZE");
  own.rank = *variables.index("RANK", own.world_size, "WORLD_SIZE");
  const auto local_size = variables.size("LOCAL_WORLD_SIZE");
  own.local_rank = *variables.index("LOCAL_RANK", local_size.value_or(own.world_size),
                                    local_size ? "LOCAL_WORLD_SIZE" : "WORLD_SIZE");
  if (const auto groups = variables.size("GROUP_WORLD_SIZE")) {
    (void)variables.index("GROUP_RANK", *groups, "GROUP_WORLD_SIZE");
    if (*groups > 1) own.several_hosts = say("GROUP_WORLD_SIZE", *groups);
  }
  if (local_size) {
    set_local_size(own, *local_size, "LOCAL_WORLD_SIZE", "WORLD_SIZE");
  } else if (own.local_rank != own.rank) {
    if (own.several_hosts.empty())
      own.several_hosts = fmt::format("{} with {}", say("LOCAL_RANK", own.local_rank), say("RANK", own.rank));
  } else if (own.several_hosts.empty()) {
    own.local_world_size = own.world_size;
  }
  own.node = variables.text("GROUP_RANK");
  own.restart_count = variables.number("TORCHELASTIC_RESTART_COUNT", 0, INT_MAX).value_or(0);
  if (variables.has_all({"MASTER_PORT"}) || variables.has_all({"TORCHELASTIC_RUN_ID"}))
    own.job = fmt::format("{} {} {}", variables.text("TORCHELASTIC_RUN_ID"), variables.text("MASTER_ADDR"),
                          variables.text("MASTER_PORT"));
  own.believed = variables.believed();
  return own;
}

std::optional<LaunchedRank> from_slurm(const Lookup& lookup) {
  Variables variables(lookup);
  if (!variables.has_all({"SLURM_PROCID", "SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS"})) return std::nullopt;
  if (is_below_mpirun(variables)) return std::nullopt;
  LaunchedRank own;
  own.launcher = "slurm";
  own.world_size = *variables.size("SLURM_STEP_NUM_TASKS");
  own.rank = *variables.index("SLURM_PROCID", own.world_size, "SLURM_STEP_NUM_TASKS");
  const auto local_rank = variables.index("SLURM_LOCALID", own.world_size, "SLURM_STEP_NUM_TASKS");
  if (const auto nodes = variables.size("SLURM_STEP_NUM_NODES"); nodes > 1)
    own.several_hosts = say("SLURM_STEP_NUM_NODES", *nodes);
  const int node = variables.number("SLURM_NODEID", 0, kMaxRanks).value_or(0);
  const std::string tasks = variables.text("SLURM_STEP_TASKS_PER_NODE");
  const bool alone = own.several_hosts.empty() && tasks.empty();
  // The list of the step is in the order of the hosts' names. In a heterogeneous job, this is not that of their
  // numbers.
  const std::vector<int> neighbours = ranks_on_node(variables.text("SLURM_GTIDS"));
  const bool listed = std::ranges::binary_search(neighbours, own.rank);
  const auto local_size = listed  ? static_cast<int>(neighbours.size())
                          : alone ? own.world_size
                                  : tasks_on_node(tasks, node);
  if (local_rank && local_size && *local_rank < *local_size)
    set_local_size(own, *local_size, listed ? "SLURM_GTIDS" : "SLURM_STEP_TASKS_PER_NODE", "SLURM_STEP_NUM_TASKS");
  own.local_rank = local_rank.value_or(own.rank);
  own.node = variables.text("SLURM_NODEID");
  own.job = fmt::format("{}.{}", variables.text("SLURM_JOB_ID"), variables.text("SLURM_STEP_ID"));
  own.restart_count = variables.number("SLURM_RESTART_COUNT", 0, INT_MAX).value_or(0);
  own.believed = variables.believed();
  return own;
}

std::optional<LaunchedRank> from_open_mpi(const Lookup& lookup) {
  Variables variables(lookup);
  if (!variables.has_all(
          {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"}))
    return std::nullopt;
  LaunchedRank own;
  own.launcher = "openmpi";
  own.world_size = *variables.size("OMPI_COMM_WORLD_SIZE");
  own.rank = *variables.index("OMPI_COMM_WORLD_RANK", own.world_size, "OMPI_COMM_WORLD_SIZE");
  const int local_size = *variables.size("OMPI_COMM_WORLD_LOCAL_SIZE");
  own.local_rank = *variables.index("OMPI_COMM_WORLD_LOCAL_RANK", local_size, "OMPI_COMM_WORLD_LOCAL_SIZE");
  set_local_size(own, local_size, "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE");
  own.node = variables.text("PMIX_HOSTNAME");
  own.job = variables.text("PMIX_NAMESPACE");
  // Namespaces have 16 bits for the launcher; its directory tells jobs of one host apart for certain.
  if (!own.job.empty() && own.several_hosts.empty()) own.job += " " + variables.text("PMIX_SERVER_TMPDIR");
  own.believed = variables.believed();
  return own;
}

std::optional<LaunchedRank> from_pmi(const Lookup& lookup) {
  Variables variables(lookup);
  if (!variables.has_all({"PMI_RANK", "PMI_SIZE"})) return std::nullopt;
  if (!variables.has_all({"PMI_FD"}) && !variables.has_all({"COL_STORE"})) return std::nullopt;
  LaunchedRank own;
  own.world_size = *variables.size("PMI_SIZE");
  own.rank = *variables.index("PMI_RANK", own.world_size, "PMI_SIZE");
  own.local_rank = own.rank;
  own.launcher = "pmi";
  if (const auto local_size = variables.size("MPI_LOCALNRANKS")) {
    own.launcher = "mpich";
    set_local_size(own, *local_size, "MPI_LOCALNRANKS", "PMI_SIZE");
    if (const auto local_rank = variables.index("MPI_LOCALRANKID", *local_size, "MPI_LOCALNRANKS"))
      own.local_rank = *local_rank;
    else
      own.local_world_size = 0;
  }
  own.pmi_fd = variables.number("PMI_FD", 0, INT_MAX);
  own.believed = variables.believed();
  return own;
}

std::optional<LaunchedRank> from_kubernetes(const Lookup& lookup) {
  Variables variables(lookup);
  const std::string_view size_name = variables.has_all({"COL_WORLD_SIZE"}) ? "COL_WORLD_SIZE" : "WORLD_SIZE";
  if (!variables.has_all({"JOB_COMPLETION_INDEX", size_name})) return std::nullopt;
  LaunchedRank own;
  own.launcher = "kubernetes";
  own.world_size = *variables.size(size_name);
  own.rank = *variables.index("JOB_COMPLETION_INDEX", own.world_size, size_name);
  // A pod is a host of its own.
  own.local_world_size = 1;
  own.node = variables.text("JOB_COMPLETION_INDEX");
  if (own.world_size > 1) own.several_hosts = say("JOB_COMPLETION_INDEX", own.rank);
  own.believed = variables.believed();
  return own;
}

std::optional<LaunchedRank> find_launched_rank(const Lookup& lookup) {
  for (const auto& from : {from_torchrun, from_slurm, from_open_mpi, from_pmi, from_kubernetes}) {
    if (auto own = from(lookup)) return own;
  }
  return std::nullopt;
}

std::string place_line(const Lookup& lookup) {
  std::string line;
  for (const auto* const name : {"COL_RANK", "COL_WORLD_SIZE", "COL_JOB_ID", "COL_RESTART_COUNT", "COL_STORE"}) {
    if (const auto value = lookup(name)) line += fmt::format("{}={}, ", name, *value);
  }
  if (lookup("COL_RANK")) return line;  // another launcher's variables are left over then, and may be wrong
  if (const auto own = find_launched_rank(lookup))
    line += fmt::format("{} {}, {}", own->job, own->restart_count, own->believed);
  return line;
}

std::string why_alone(const Lookup& lookup) {
  const Variables variables(lookup);
  std::string why;
  if (variables.has_all({"RANK", "WORLD_SIZE"}) && variables.text("WORLD_SIZE") != "1") {
    why = "RANK and WORLD_SIZE are set but LOCAL_RANK is not, so they may count hosts";
  } else if (variables.has_all({"PMI_RANK", "PMI_SIZE"}) && variables.text("PMI_SIZE") != "1") {
    why = "PMI_RANK and PMI_SIZE are set, but neither PMI_FD nor COL_STORE, so the ranks cannot find one another";
  } else if (variables.has_all({"PMIX_RANK"})) {
    why = "PMIX_RANK is set, but nothing says how many ranks there are";
  } else {
    return "";
  }
  return why + "; this process is a world of one. Start it with colrun, or set COL_RANK, COL_WORLD_SIZE and COL_STORE";
}

std::vector<int> ranks_on_node(std::string_view text) {
  std::vector<int> ranks;
  while (!text.empty()) {
    const std::string_view number = text.substr(0, text.find(','));
    text.remove_prefix(std::min(number.size() + 1, text.size()));
    const char* const end = number.data() + number.size();
    int rank = 0;
    const auto [after, error] = std::from_chars(number.data(), end, rank);
    if (error != std::errc() || after != end || rank < 0) return {};
    ranks.push_back(rank);
  }
  std::ranges::sort(ranks);
  return ranks;
}

std::optional<int> tasks_on_node(std::string_view text, int node) {
  // Groups of "tasks" or "tasks(xnodes)", separated by commas.
  while (!text.empty()) {
    const std::string_view group = text.substr(0, text.find(','));
    text.remove_prefix(std::min(group.size() + 1, text.size()));
    const char* const end = group.data() + group.size();
    int tasks = 0, nodes = 1;
    const auto [after_tasks, tasks_error] = std::from_chars(group.data(), end, tasks);
    if (tasks_error != std::errc() || tasks < 1) return std::nullopt;
    std::string_view rest(after_tasks, static_cast<std::size_t>(end - after_tasks));
    if (!rest.empty()) {
      if (!rest.starts_with("(x") || !rest.ends_with(")")) return std::nullopt;
      rest = rest.substr(2, rest.size() - 3);
      const auto [after_nodes, nodes_error] = std::from_chars(rest.data(), rest.data() + rest.size(), nodes);
      if (nodes_error != std::errc() || after_nodes != rest.data() + rest.size() || nodes < 1) return std::nullopt;
    }
    if (node < nodes) return tasks;
    node -= nodes;
  }
  return std::nullopt;
}

}  // namespace col::group::adopt

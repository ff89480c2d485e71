#include "launch/nodes/rendezvous.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <col/store.hpp>

#include "common/exit_codes.hpp"
#include "common/numbers.hpp"
#include "common/option_values.hpp"
#include "common/unique_fd.hpp"
#include "launch/job/assignment.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/nodes/endpoint.hpp"
#include "launch/nodes/node_messages.hpp"
#include "net/address.hpp"

namespace col::launch {
namespace {

// Ports that a job of a scheduler meets at: below those that the kernel gives to connections.
constexpr int kFirstPort = 20'000;
constexpr int kPorts = 9'000;

std::optional<int> number(const Lookup& lookup, const char* name, int least, int most) {
  const auto text = lookup(name);
  return text ? tools::parse_whole_number(std::string_view(*text), least, most) : std::nullopt;
}

// Nothing if this is not a separate task on each node of a step.
std::optional<NodePlace> from_slurm(const Lookup& lookup) {
  const auto step = lookup("SLURM_STEP_ID");
  const auto job = lookup("SLURM_JOB_ID");
  const auto list = lookup("SLURM_STEP_NODELIST");
  const auto nodes = number(lookup, "SLURM_STEP_NUM_NODES", 1, kMaxNodes);
  const auto tasks = number(lookup, "SLURM_STEP_NUM_TASKS", 1, kMaxNodes);
  const auto node = number(lookup, "SLURM_NODEID", 0, kMaxNodes);
  if (!step || !job || !list || !nodes || !tasks || !node) return std::nullopt;
  if (*tasks != *nodes) {
    throw LaunchError(tools::exit_code::kUsage,
                      "this Slurm step has {} tasks on {} nodes, and each would start ranks of its own; "
                      "start one colrun on each node (srun --ntasks-per-node=1 colrun -n N …), or say "
                      "--scheduler none for jobs that have nothing to do with one another",
                      *tasks, *nodes);
  }
  std::uint32_t mixed = 2166136261U;  // FNV-1a: the same on all nodes, whatever they were built with
  for (const char letter : *job + "." + *step) mixed = (mixed ^ static_cast<unsigned char>(letter)) * 16777619U;
  NodePlace place;
  place.min_nodes = place.max_nodes = *nodes;
  place.node_rank = *node;
  place.endpoint = fmt::format("{}:{}", first_host(*list),
                               kFirstPort + static_cast<int>(mixed % static_cast<std::uint32_t>(kPorts)));
  place.id = fmt::format("slurm-{}.{}", *job, *step);
  return place;
}

// Pods of an Indexed Job are called <job>-<index>, and with a headless service <job>-<index>.<service>.<…>.
std::string first_pod(const std::string& name, int index) {
  const std::size_t dot = std::min(name.find('.'), name.size());
  const std::string suffix = fmt::format("-{}", index);
  const std::string pod = name.substr(0, dot);
  if (!pod.ends_with(suffix)) return {};
  return pod.substr(0, pod.size() - suffix.size()) + "-0" + name.substr(dot);
}

// Nothing when PET_* do not say enough: how many nodes, and either which of them this is and where the first one is,
// or, for an elastic job, where all of them meet.
std::optional<NodePlace> from_training_operator(const Lookup& lookup) {
  const auto counts = parse_node_counts(lookup("PET_NNODES").value_or(""));
  if (!counts) return std::nullopt;
  NodePlace place;
  place.min_nodes = counts->first;
  place.max_nodes = counts->second;
  place.id = lookup("PET_RDZV_ID").value_or("");
  const auto rank = number(lookup, "PET_NODE_RANK", 0, kMaxNodes);
  if (rank) place.node_rank = *rank;
  if (const auto endpoint = lookup("PET_RDZV_ENDPOINT")) {
    place.endpoint = *endpoint;
    return place;
  }
  const auto address = lookup("PET_MASTER_ADDR");
  if (!rank || !address) return std::nullopt;
  place.endpoint = url_host(*address) + ":" + lookup("PET_MASTER_PORT").value_or(std::to_string(kDefaultPort));
  return place;
}

std::optional<NodePlace> from_kubernetes(const NodesSpec& nodes, const Lookup& lookup) {
  if (auto operated = from_training_operator(lookup)) return operated;
  NodePlace place;
  const auto index = number(lookup, "JOB_COMPLETION_INDEX", 0, kMaxNodes);
  if (!index || nodes.max_nodes <= 1) return std::nullopt;
  place.min_nodes = nodes.min_nodes;
  place.max_nodes = nodes.max_nodes;
  place.node_rank = *index;
  const std::string host = first_pod(net::full_host_name(host_name()), *index);
  if (!host.empty()) place.endpoint = fmt::format("{}:{}", host, kDefaultPort);
  return place;
}

using tools::exit_code::kLauncher;
using tools::exit_code::kUsage;

constexpr std::size_t kMaxSecretBytes = 4096;
// Less is what a busy process may stand still for.
constexpr Milliseconds kLeastHostTimeout{500};

[[noreturn]] void refuse_hosts(const std::string& why) {
  throw LaunchError(kUsage, why);
}

// The shared secret of the nodes, which is never on a command line.
std::string read_secret(const Lookup& lookup) {
  if (const auto token = lookup("COL_RDZV_TOKEN")) return *token;
  const auto path = lookup("COL_RDZV_TOKEN_FILE");
  if (!path) return {};
  const auto fail = [&](const std::string& why) {
    throw LaunchError(kLauncher, "COL_RDZV_TOKEN_FILE={}: {}", *path, why);
  };
  const tools::UniqueFd file(::open(path->c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) fail(strerror(errno));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) fail(strerror(errno));
  if (info.st_uid != ::geteuid() || (info.st_mode & 077) != 0)
    fail("others may read it; it must be yours, with mode 0600 (chmod 600)");
  std::string text(kMaxSecretBytes, '\0');
  const ssize_t length = ::read(file.get(), text.data(), text.size());
  if (length < 0) fail(strerror(errno));
  text.resize(static_cast<std::size_t>(length));
  while (text.ends_with('\n')) text.pop_back();
  if (text.empty()) fail("it is empty; put a secret of your choice in it, the same on all nodes");
  return text;
}

// A host that is named twice has the ranks of both.
std::vector<HostSpec> merge_hosts(const std::vector<HostSpec>& hosts, int ranks_per_host) {
  std::vector<HostSpec> merged;
  for (HostSpec host : hosts) {
    host.slots = host.slots.value_or(ranks_per_host);
    const auto same = std::ranges::find_if(merged, [&](const HostSpec& other) { return other.name == host.name; });
    if (same != merged.end()) {
      same->slots = *same->slots + *host.slots;
      continue;
    }
    host.node_rank = static_cast<int>(merged.size());
    merged.push_back(std::move(host));
  }
  return merged;
}

// As libcol reads it.
Milliseconds read_host_timeout(const Lookup& lookup) {
  const auto text = lookup("COL_HOST_TIMEOUT");
  if (!text) return Pulse::kDefault;
  auto time = tools::parse_duration(*text);
  if (!time) time = tools::parse_duration(*text + "s");
  if (!time || *time < kLeastHostTimeout)
    throw LaunchError(kUsage,
                      "COL_HOST_TIMEOUT='{}' is not a time of at least {} ms; write 5s, 500ms or 2m, the same "
                      "on all hosts",
                      *text, kLeastHostTimeout.count());
  return std::chrono::ceil<Milliseconds>(*time);
}

Milliseconds rendezvous_time(const JobSpec& spec) {
  return std::min(spec.nodes.rendezvous_timeout, spec.lifecycle.start_timeout.value_or(Milliseconds::max()));
}

Rendezvous by_hosts(JobSpec& spec) {
  Rendezvous meeting;
  for (const Program& program : spec.programs) meeting.program_ranks.push_back(program.ranks);
  const std::vector<HostSpec> hosts = merge_hosts(spec.nodes.hosts, spec.local_ranks());
  const bool several_programs = spec.programs.size() > 1;
  int local_ranks = 0;
  for (const HostSpec& host : hosts) {
    if (*host.slots < 1 || *host.slots > kMaxRanks)
      refuse_hosts(fmt::format("host {} cannot have {} ranks; 1 to {} go", host.name, *host.slots, kMaxRanks));
    if (several_programs && *host.slots != spec.local_ranks())
      refuse_hosts("with several programs, -n of each says how many ranks a host has; leave the numbers out of --host");
    if (local_ranks == 0 && is_this_host(host.name)) {
      local_ranks = *host.slots;
      meeting.node_rank = host.node_rank;
    } else {
      meeting.remotes.push_back(host);
    }
  }
  if (!several_programs) {
    spec.programs.front().ranks = local_ranks;
  } else if (local_ranks == 0) {
    for (Program& program : spec.programs) program.ranks = 0;
  }
  if (meeting.remotes.empty()) return {};
  meeting.alone = false;
  meeting.id = make_store_token();
  meeting.secret = make_store_token();
  meeting.min_nodes = meeting.max_nodes = static_cast<int>(hosts.size());
  meeting.timeout = rendezvous_time(spec);
  return meeting;
}

Rendezvous by_endpoint(Milliseconds timeout, const NodePlace& place, const Lookup& lookup) {
  Rendezvous meeting;
  meeting.alone = false;
  meeting.min_nodes = place.min_nodes;
  meeting.max_nodes = place.max_nodes;
  meeting.node_rank = place.node_rank;
  meeting.id = place.id;
  meeting.timeout = timeout;
  if (place.endpoint.empty())
    refuse_hosts(
        fmt::format("{} nodes need a place to meet; add --rdzv-endpoint host:{}, the same on all of them, or start "
                    "them with --host",
                    place.max_nodes, kDefaultPort));
  const Endpoint endpoint = parse_endpoint(place.endpoint);
  meeting.endpoints = {endpoint};
  meeting.may_serve = true;
  if (meeting.node_rank >= meeting.max_nodes)
    refuse_hosts(
        fmt::format("--node-rank {} does not fit {} nodes; they count from 0", meeting.node_rank, meeting.max_nodes));
  meeting.secret = read_secret(lookup);
  return meeting;
}

}  // namespace

std::optional<std::pair<int, int>> parse_node_counts(std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto least = tools::parse_whole_number(text.substr(0, colon), 1, kMaxNodes);
  const auto most =
      colon == std::string_view::npos ? least : tools::parse_whole_number(text.substr(colon + 1), 1, kMaxNodes);
  if (!least || !most || *least > *most) return std::nullopt;
  return std::pair(*least, *most);
}

std::string first_host(std::string_view list) {
  const std::size_t bracket = list.find('[');
  const std::size_t comma = list.find(',');
  if (bracket == std::string_view::npos || comma < bracket) return std::string(list.substr(0, comma));
  const std::size_t end = list.find_first_of("-,]", bracket + 1);
  const std::size_t close = list.find(']', bracket);
  if (end == std::string_view::npos || close == std::string_view::npos) return std::string(list);
  // Names of several dimensions have more brackets: "r[1-2]n[3-4]".
  return first_host(fmt::format("{}{}{}", list.substr(0, bracket), list.substr(bracket + 1, end - bracket - 1),
                                list.substr(close + 1)));
}

NodePlace find_node(const NodesSpec& nodes, const Lookup& lookup) {
  std::optional<NodePlace> found;
  const bool any = nodes.scheduler == Scheduler::automatic;
  if (any || nodes.scheduler == Scheduler::slurm) found = from_slurm(lookup);
  if (!found && (any || nodes.scheduler == Scheduler::kubernetes)) found = from_kubernetes(nodes, lookup);
  if (!found && nodes.scheduler == Scheduler::slurm)
    throw LaunchError(tools::exit_code::kUsage,
                      "--scheduler slurm, but this is no task of a step with one task per node; start it with "
                      "`srun --ntasks-per-node=1 colrun …`");
  if (!found && nodes.scheduler == Scheduler::kubernetes)
    throw LaunchError(tools::exit_code::kUsage,
                      "--scheduler k8s, but there is no JOB_COMPLETION_INDEX (an Indexed Job, with --nnodes) and no "
                      "PET_NNODES with PET_RDZV_ENDPOINT, or with PET_NODE_RANK and PET_MASTER_ADDR");
  NodePlace place = found.value_or(NodePlace{});
  if (nodes.max_nodes > 1) {
    place.min_nodes = nodes.min_nodes;
    place.max_nodes = nodes.max_nodes;
  }
  if (nodes.node_rank) place.node_rank = *nodes.node_rank;
  if (!nodes.endpoint.empty())
    place.endpoint = nodes.endpoint;
  else if (const auto endpoint = lookup("COL_RDZV_ENDPOINT"))
    place.endpoint = *endpoint;
  if (!nodes.rendezvous_id.empty()) place.id = nodes.rendezvous_id;
  return place;
}

int remote_ranks(const Rendezvous& rendezvous, const HostSpec& host, std::size_t program) {
  return rendezvous.program_ranks.size() == 1 ? *host.slots : rendezvous.program_ranks[program];
}

Rendezvous plan_rendezvous(JobSpec& spec, const Lookup& lookup) {
  const NodesSpec& nodes = spec.nodes;
  Rendezvous meeting;
  if (!nodes.hosts.empty()) {
    meeting = by_hosts(spec);
  } else if (const NodePlace place = find_node(nodes, lookup); place.max_nodes > 1) {
    meeting = by_endpoint(rendezvous_time(spec), place, lookup);
  }
  if (!meeting.alone) meeting.host_timeout = read_host_timeout(lookup);
  return meeting;
}

}  // namespace col::launch

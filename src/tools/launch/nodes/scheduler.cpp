#include "launch/nodes/scheduler.hpp"

#include <netdb.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "common/numbers.hpp"
#include "launch/job/host_name.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/nodes/endpoint.hpp"
#include "launch/nodes/node_messages.hpp"

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
                      fmt::format("this Slurm step has {} tasks on {} nodes, and each would start ranks of its own; "
                                  "start one colrun on each node (srun --ntasks-per-node=1 colrun -n N …), or say "
                                  "--scheduler none for jobs that have nothing to do with one another",
                                  *tasks, *nodes));
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

// This host's name with its domain, as the name service knows it.
std::string full_host_name() {
  struct Free {
    void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
  };
  addrinfo hints{};
  hints.ai_flags = AI_CANONNAME;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const std::string name = host_name();
  if (::getaddrinfo(name.c_str(), nullptr, &hints, &list) != 0) return name;
  const std::unique_ptr<addrinfo, Free> owner(list);
  return list->ai_canonname != nullptr ? list->ai_canonname : name;
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
  const std::string host = first_pod(full_host_name(), *index);
  if (!host.empty()) place.endpoint = fmt::format("{}:{}", host, kDefaultPort);
  return place;
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

}  // namespace col::launch

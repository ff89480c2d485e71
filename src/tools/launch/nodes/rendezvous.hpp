// How this node's launcher finds those of the other nodes. It is settled from the options, a scheduler's variables and
// the environment before anything is started.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json/json_fields.hpp"
#include "launch/job/job_spec.hpp"
#include "launch/nodes/endpoint.hpp"
#include "launch/nodes/pulse.hpp"

namespace col::launch {

struct Rendezvous {
  bool alone = true;  // one node: the other members have no meaning
  // this launcher may serve the meeting, if the endpoint is on this host and no other launcher there serves it
  bool may_serve = false;
  std::vector<Endpoint> endpoints = {};  // where the meeting is; the first one that answers correctly counts
  std::string id = {};
  std::string secret = {};
  int min_nodes = 1;
  int max_nodes = 1;
  int node_rank = -1;  // -1: any
  Milliseconds timeout{600'000};
  Milliseconds host_timeout = Pulse::kDefault;  // COL_HOST_TIMEOUT
  std::vector<HostSpec> remotes = {};           // hosts to start by ssh
  // The ranks of each program on a remote host. With a single program, the host says (HostSpec::slots, which is always
  // set here).
  std::vector<int> program_ranks = {};
  bool reports = true;  // whether this node tells its user how the job ended
};

template <class Visit>
void fields(Rendezvous& meeting, Visit& visit) {
  auto& [alone, may_serve, endpoints, id, secret, min_nodes, max_nodes, node_rank, timeout, host_timeout, remotes,
         program_ranks, reports] = meeting;
  visit("endpoints", endpoints);
  visit("id", id);
  visit("secret", secret);
  visit("node_rank", node_rank);
  visit("timeout_ms", timeout);
  visit("host_timeout_ms", host_timeout);
  core::stays(alone, may_serve, min_nodes, max_nodes, remotes, program_ranks, reports);
}

// The value of a variable; nothing if it is unset or empty.
using Lookup = std::function<std::optional<std::string>(const char* name)>;

// How many ranks of that program a remote host has.
int remote_ranks(const Rendezvous& rendezvous, const HostSpec& host, std::size_t program);

// Settles `spec` too: with --host, how many ranks are on this host. Throws LaunchError: 2 if options contradict each
// other or a scheduler, 125 if a secret cannot be read.
Rendezvous plan_rendezvous(JobSpec& spec, const Lookup& lookup);

// Which node this is, and how many there are: from the options, else from a scheduler.
struct NodePlace {
  int min_nodes = 1;
  int max_nodes = 1;
  int node_rank = -1;    // -1: unknown
  std::string endpoint;  // empty: unknown
  std::string id;
};

// Options win. After them, for one launcher on each node:
// - Slurm (srun --ntasks-per-node=1 colrun …): the step gives the nodes and the number, and the first node of its list
//   is the endpoint
// - Kubernetes: an Indexed Job says which pod this is, and --nnodes says how many there are; PET_* of its training
//   operator say everything
//
// Throws LaunchError (2) if a scheduler that was requested by name says nothing.
NodePlace find_node(const NodesSpec& nodes, const Lookup& lookup);

// "2" and "1:4": the least and the largest number of nodes. Nothing if `text` is not such a range.
std::optional<std::pair<int, int>> parse_node_counts(std::string_view text);

// The first host of a list in Slurm's notation: "n01" for "n[01-03,7],m5".
std::string first_host(std::string_view list);

}  // namespace col::launch

// How this node's launcher finds those of the other nodes: settled from the options, a scheduler's variables and the
// environment before anything is started.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/job_spec.hpp"
#include "launch/nodes/endpoint.hpp"

namespace col::launch {

struct Rendezvous {
  bool alone = true;       // one node: nothing below counts
  bool may_serve = false;  // the meeting, when the endpoint is on this host and no other launcher there does
  std::vector<Endpoint> endpoints = {};  // where the meeting is; the first that answers rightly counts
  std::string id = {};
  std::string secret = {};
  int min_nodes = 1;
  int max_nodes = 1;
  int node_rank = -1;  // -1: any
  Milliseconds timeout{600'000};
  std::vector<HostSpec> remotes = {};  // to be started by ssh
  // Of each program on a remote host; with a single program, the host says (HostSpec::slots, which is always set here).
  std::vector<int> program_ranks = {};
  bool reports = true;  // this node tells its user how the job ended
};

// The value of a variable; nothing when unset or empty.
using Lookup = std::function<std::optional<std::string>(const char* name)>;

// How many ranks of that program a remote host has.
int remote_ranks(const Rendezvous& rendezvous, const HostSpec& host, std::size_t program);

// Settles `spec` too: with --host, how many ranks are on this host. Throws LaunchError: 2 when options contradict one
// another or what a scheduler says, 125 when a secret cannot be read.
Rendezvous plan_rendezvous(JobSpec& spec, const Lookup& lookup);

}  // namespace col::launch

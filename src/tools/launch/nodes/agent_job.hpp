// A job as one launcher tells it to another: a JSON text of one line.
#pragma once

#include <string>

#include "launch/job_spec.hpp"
#include "launch/nodes/rendezvous.hpp"

namespace col::launch {

struct AgentJob {
  JobSpec spec;
  Rendezvous rendezvous;
  std::string directory;                 // to start in
  std::vector<std::string> environment;  // "NAME=value", in addition to what the remote shell has
};

// For the launcher on `host`; the nodes meet at `port` of this one.
std::string agent_job_text(const JobSpec& spec, const Rendezvous& meeting, const HostSpec& host, int port);
// Throws LaunchError (125) when `text` is none.
AgentJob parse_agent_job(const std::string& text);

}  // namespace col::launch

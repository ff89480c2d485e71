// A job as one launcher sends it to another, which it starts by ssh: a line with the version, and a frame of packed
// JSON.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/job/job_spec.hpp"
#include "launch/nodes/rendezvous.hpp"

namespace col::launch {

// Whether ranks of that host read the launcher's input. `host` is one of meeting.remotes.
bool reads_input(const JobSpec& spec, const Rendezvous& meeting, const HostSpec& host);
// The same for ranks of this host.
bool reads_input_here(const JobSpec& spec, const Rendezvous& meeting);
// True if the job has one rank, on whatever host.
bool has_one_rank(const JobSpec& spec, const Rendezvous& meeting);

struct AgentJob {
  JobSpec spec;
  Rendezvous rendezvous = {};
  std::string directory;                 // to start in
  std::vector<std::string> environment;  // "NAME=value", in addition to what the remote shell has
};

// For the launcher on `host`. The nodes meet at `port` of this host.
std::string agent_job_bytes(const JobSpec& spec, const Rendezvous& meeting, const HostSpec& host, int port);
// How many bytes at the front of what has come are the job; empty while it is not whole. Throws LaunchError (125) if it
// cannot become a job of this version of colrun.
std::optional<std::size_t> agent_job_size(std::string_view begun);
// Throws LaunchError (125) if `bytes` are not a job.
AgentJob parse_agent_job(std::string_view bytes);

}  // namespace col::launch

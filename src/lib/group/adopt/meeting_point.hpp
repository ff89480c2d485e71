// Where the ranks of a job on several hosts meet when nobody has given them a store: global rank 0 serves one there.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "group/adopt/launchers.hpp"

namespace col::group::adopt {

struct MeetingPoint {
  std::string host;    // a name or an address, of the host of rank 0
  int port = 0;        // 0: job_port()
  std::string source;  // the variable that says so, for messages
  std::string job;     // what tells the job from others when nothing else does; equal on all ranks
};

// COL_RDZV_ENDPOINT ("host:port", "[::1]:4711", or a host alone), else what the launcher tells of the host of rank 0:
// the first of SLURM_STEP_NODELIST, MASTER_ADDR, or the first pod of an Indexed Job, by this one's `own_name`. Errors:
// invalid_argument (a value that is no such thing), unavailable (nothing tells); both name COL_RDZV_ENDPOINT.
//
// `own_name` is called for pods alone, as it may take a while.
MeetingPoint find_meeting_point(const Place& place, const Lookup& lookup, const std::function<std::string()>& own_name);

// The name of this host, with its domain when the resolver knows one.
std::string full_host_name();

// Of pod number `index` of an Indexed Job, "<job>-<index>" with or without ".<service>…": the name of the first pod.
// Empty when `name` is none of such a pod.
std::string first_pod(std::string_view name, int index);

// From 20000 to 28999, the same for the same `job`: outside of the range from which kernels and Kubernetes choose, and
// not the port of torchrun.
int job_port(std::string_view job) noexcept;

}  // namespace col::group::adopt

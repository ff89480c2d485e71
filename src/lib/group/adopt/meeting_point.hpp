// Where the ranks of a job on several hosts meet without a store from the user: one of them serves it there, mostly
// global rank 0.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "group/adopt/launchers.hpp"

namespace col::group::adopt {

struct MeetingPoint {
  std::string host;    // a name or an address of the host of the rank that serves
  int port = 0;        // 0: job_port()
  std::string source;  // the variable that says this, for messages
  std::string job;     // separates the job from others if nothing else does; equal on all ranks
  // Which rank serves, for messages, and whether it is this one; nothing: rank 0.
  std::string server = "rank 0";
  std::optional<bool> serves = {};
};

// COL_RDZV_ENDPOINT ("host:port", "[::1]:4711", or only a host), else what the launcher says: the first host of
// SLURM_STEP_NODELIST, MASTER_ADDR, or the first pod of an Indexed Job, from this pod's `own_name`. Slurm sorts its
// list: the first host need not be that of rank 0, and its lowest rank serves. Errors: invalid_argument (an invalid
// value), unavailable (nothing tells); both name COL_RDZV_ENDPOINT.
//
// `own_name` is called only for pods, because it may take some time. `first_host` asks PMI's launcher for the host of
// rank 0; it is called only for ranks that have a socket to it.
MeetingPoint find_meeting_point(const LaunchedRank& own, const Lookup& lookup,
                                const std::function<std::string()>& own_name,
                                const std::function<std::string()>& first_host);

// The first host of a list of Slurm's: "n1", "n[01-03,7]", "a1,b[2-4]", "rack[1-2]node[1-8]-ib". Nothing if `list` is
// not such a list.
std::optional<std::string> first_of_node_list(std::string_view list);

// The name of this host, with its domain if the resolver knows one.
std::string full_host_name();

// `name` is that of pod number `index` of an Indexed Job: "<job>-<index>" with or without ".<service>…". Returns the
// name of the first pod. Empty if `name` is not such a name.
std::string first_pod(std::string_view name, int index);

// From 20000 to 28999, equal for equal `job`. It is outside of the range from which kernels and Kubernetes choose, and
// differs from torchrun's port.
int job_port(std::string_view job) noexcept;

}  // namespace col::group::adopt

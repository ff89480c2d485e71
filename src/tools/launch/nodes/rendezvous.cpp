#include "launch/nodes/rendezvous.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include <col/store.hpp>

#include "common/exit_codes.hpp"
#include "common/unique_fd.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/nodes/scheduler.hpp"

namespace col::launch {
namespace {

using tools::exit_code::kLauncher;
using tools::exit_code::kUsage;

constexpr std::size_t kMaxSecretBytes = 4096;

[[noreturn]] void refuse_hosts(const std::string& why) {
  throw LaunchError(kUsage, why);
}

// The shared secret of the nodes, which is never on a command line.
std::string read_secret(const Lookup& lookup) {
  if (const auto token = lookup("COL_RDZV_TOKEN")) return *token;
  const auto path = lookup("COL_RDZV_TOKEN_FILE");
  if (!path) return {};
  const auto fail = [&](const std::string& why) {
    throw LaunchError(kLauncher, fmt::format("COL_RDZV_TOKEN_FILE={}: {}", *path, why));
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
    const auto same =
        std::find_if(merged.begin(), merged.end(), [&](const HostSpec& other) { return other.name == host.name; });
    if (same != merged.end()) {
      same->slots = *same->slots + *host.slots;
      continue;
    }
    host.node_rank = static_cast<int>(merged.size());
    merged.push_back(std::move(host));
  }
  return merged;
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

int remote_ranks(const Rendezvous& rendezvous, const HostSpec& host, std::size_t program) {
  return rendezvous.program_ranks.size() == 1 ? *host.slots : rendezvous.program_ranks[program];
}

Rendezvous plan_rendezvous(JobSpec& spec, const Lookup& lookup) {
  const NodesSpec& nodes = spec.nodes;
  if (!nodes.hosts.empty()) return by_hosts(spec);
  const NodePlace place = find_node(nodes, lookup);
  if (place.max_nodes <= 1) return {};
  return by_endpoint(rendezvous_time(spec), place, lookup);
}

}  // namespace col::launch

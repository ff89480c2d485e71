#include "launch/nodes/input_hosts.hpp"

namespace col::launch {
namespace {

// Ranks are dealt out to the hosts in the order of the list.
int first_rank(const JobSpec& spec, const Rendezvous& meeting, int node_rank) {
  const bool after_this = meeting.node_rank >= 0 && meeting.node_rank < node_rank;
  int ranks = after_this ? spec.local_ranks() : 0;
  for (const HostSpec& host : meeting.remotes) {
    if (host.node_rank < node_rank) ranks += host.slots.value_or(0);
  }
  return ranks;
}

bool reads(const JobSpec& spec, const Rendezvous& meeting, int node_rank, int ranks) {
  if (spec.stdin_fd < 0 || ranks == 0) return false;
  if (spec.input.to != InputSpec::To::rank) return spec.input.to == InputSpec::To::all;
  const int first = first_rank(spec, meeting, node_rank);
  return spec.input.rank >= first && spec.input.rank < first + ranks;
}

}  // namespace

bool reads_input(const JobSpec& spec, const Rendezvous& meeting, const HostSpec& host) {
  return reads(spec, meeting, host.node_rank, host.slots.value_or(0));
}

bool reads_input_here(const JobSpec& spec, const Rendezvous& meeting) {
  return reads(spec, meeting, meeting.node_rank, spec.local_ranks());
}

}  // namespace col::launch

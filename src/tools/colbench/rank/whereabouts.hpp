// Where the ranks of a run are: which of them share a host, and which reach each other without a network.
#pragma once

#include <sched.h>

#include <array>
#include <span>
#include <vector>

namespace col::colbench {

// What one rank says of itself. Trivially copyable: gathered as it is. Empty texts are unknown.
struct Whereabouts {
  std::array<char, 64> boot = {};  // another one with every boot of every machine
  std::array<char, 64> network_namespace = {}, pid_namespace = {};
  cpu_set_t cpus = {};  // that it may use; none when they are more than fit
  int cpu_count = 1;
};

Whereabouts own_whereabouts();

bool share_host(const Whereabouts& a, const Whereabouts& b);
// Whether process numbers of the one mean the same to the other.
bool share_processes(const Whereabouts& a, const Whereabouts& b);

// A number for each rank, from 0 in the order of the ranks: equal for those that share a host and its network. Where
// that is unknown they do.
std::vector<int> nodes_of(std::span<const Whereabouts> ranks);

// Cores that the ranks together may use. Launchers bind ranks to cores of their own: what counts on a host is what all
// of its ranks together may use.
int cpus_of(std::span<const Whereabouts> ranks);

}  // namespace col::colbench

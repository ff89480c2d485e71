// Where the ranks of a run are: which of them share a host, and which reach each other without a network.
#pragma once

#include <sched.h>

#include <array>
#include <span>
#include <string>
#include <vector>

namespace col::colbench {

// What one rank says of itself. Trivially copyable: gathered as it is. Empty texts are unknown.
struct Whereabouts {
  std::array<char, 64> boot = {};  // another one with every boot of every machine
  std::array<char, 64> network_namespace = {}, pid_namespace = {};
  std::array<char, 96> gpu = {};  // the GPU that it works with; empty when it has not been told to
  cpu_set_t cpus = {};            // that it may use; none when they are more than fit
  int cpu_count = 1;
};

// `gpu`: the number of the GPU that this rank works with; -1: none.
Whereabouts own_whereabouts(int gpu = -1);
// "ranks 0, 2: NVIDIA H200 0000:1b:00.0; rank 1: …"; empty when no rank has one.
std::string gpus_of(std::span<const Whereabouts> ranks);

bool share_host(const Whereabouts& a, const Whereabouts& b);
// Whether process numbers have the same meaning for both.
bool share_processes(const Whereabouts& a, const Whereabouts& b);

// A number for each rank, from 0 in the order of the ranks: equal for those that share a host and its network. Where
// that is unknown they do.
std::vector<int> nodes_of(std::span<const Whereabouts> ranks);

// Cores that those of the ranks that share a host with `one` may use together; none that are known: an empty set.
cpu_set_t cores_beside(std::span<const Whereabouts> ranks, const Whereabouts& one);

// Cores that the ranks together may use. Launchers bind ranks to cores of their own: what counts on a host is what all
// of its ranks together may use.
int cpus_of(std::span<const Whereabouts> ranks);

}  // namespace col::colbench

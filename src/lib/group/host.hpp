// Which machine this process runs on, as seen by the network: hostnames decide nothing, since containers copy them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <col/backend.hpp>

namespace col::group {

struct Host {
  std::string hostname;           // for messages only
  std::string boot_id;            // changes with every boot of every machine
  std::string pid_namespace;      // process ids mean the same for those with equal boot id and pid namespace
  std::string network_namespace;  // loopback is shared exactly by those with equal boot id and namespace
};

// Reads /proc once; empty fields where it cannot be read (then no two hosts count as the same).
const Host& this_host();

// Whether the process `pid` of the host with that boot id and pid namespace has ended for certain. False when this
// process cannot know, because it lives elsewhere.
bool is_gone(std::int64_t pid, const std::string& boot_id, const std::string& pid_namespace);

// For each of `peers` the number of its host, counted in their order. Those that do not share loopback are on several
// hosts, as pods on one machine are: no backend takes a short way between them.
std::vector<int> nodes_of(const std::vector<PeerInfo>& peers);

}  // namespace col::group

// The machine that this process runs on, as the network sees it. Host names do not count, because containers copy them.
#pragma once

#include <cstdint>
#include <string>

namespace col::group {

struct Host {
  std::string hostname;           // for messages only
  std::string boot_id;            // changes with every boot of every machine
  std::string pid_namespace;      // process ids have the same meaning in processes with equal boot id and pid namespace
  std::string network_namespace;  // processes share loopback exactly if boot id and network namespace are equal
};

// Reads /proc once. Fields that cannot be read are empty (then no two hosts count as the same).
const Host& this_host();

// Whether the process `pid` of the host with that boot id and pid namespace has certainly ended. False if this process
// cannot know, because it is elsewhere.
bool is_gone(std::int64_t pid, const std::string& boot_id, const std::string& pid_namespace);

}  // namespace col::group

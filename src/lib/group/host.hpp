// Which machine this process runs on, as seen by the network: hostnames decide nothing, since containers copy them.
#pragma once

#include <string>

namespace col::group {

struct Host {
  std::string hostname;           // for messages only
  std::string boot_id;            // changes with every boot of every machine
  std::string network_namespace;  // loopback is shared exactly by those with equal boot id and namespace
};

// Reads /proc once; empty fields where it cannot be read (then no two hosts count as the same).
const Host& this_host();

}  // namespace col::group

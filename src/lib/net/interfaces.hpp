// The network interfaces of this host, and which of them a backend uses between hosts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <sys/socket.h>

#include "core/export/module_export.hpp"

namespace col::net {

struct Interface {
  std::string name;
  std::string address;  // as text
  bool up = false;
  bool loopback = false;
  sockaddr_storage sockaddr{};  // port 0
  socklen_t sockaddr_bytes = 0;
};

// All that have an address, IPv4 before IPv6, otherwise in the kernel's order. Throws io.
COL_MODULE_EXPORT std::vector<Interface> list_interfaces();

// Chooses, in this order:
//   same_host         loopback: 127.0.0.1, else ::1
//   wanted not empty  those of the comma-separated list that are up and have an address, in the order of the list
//   otherwise         the interface of the default route, else the first that is up, is not loopback, and does not look
//                     like a bridge of containers or virtual machines, else the first of those
// It never looks up the host's name: on Debian this gives 127.0.1.1, which other hosts cannot reach. Returns at least
// one. Throws unavailable, with the candidates; the message begins with the name of the backend.
COL_MODULE_EXPORT std::vector<Interface> choose_interfaces(std::string_view backend, bool same_host,
                                                           std::string_view wanted);

}  // namespace col::net

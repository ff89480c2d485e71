// The network interface that the connections of a group use.
#pragma once

#include <string>
#include <string_view>

#include <sys/socket.h>

namespace col::gloo_backend {

struct Interface {
  std::string name;
  std::string address;  // as text
  bool up = false;
  sockaddr_storage sockaddr{};  // port 0
  socklen_t sockaddr_bytes = 0;
};

// Chooses, in this order:
//   same_host         loopback, 127.0.0.1
//   wanted not empty  the first name of the comma-separated list that is up and has an address
//   otherwise         the interface of the default route, else the first that is up, is not loopback, and does not look
//                     like a bridge of containers or virtual machines, else the first of those
// It never looks up the host's name: on Debian this gives 127.0.1.1, which other hosts cannot reach. Throws
// unavailable, with the candidates.
Interface choose_interface(bool same_host, std::string_view wanted);

}  // namespace col::gloo_backend

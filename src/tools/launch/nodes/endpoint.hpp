// Addresses at which the nodes of a job meet.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "common/unique_fd.hpp"

namespace col::launch {

// torchrun's, when an endpoint has none.
inline constexpr int kDefaultPort = 29400;

struct Endpoint {
  std::string host;
  int port = kDefaultPort;
  // "node7:29400", "[fd00::1]:29400"
  std::string text() const;
};

// Of "host:port", "host", "[address]:port". Throws LaunchError (2) when it is none.
Endpoint parse_endpoint(std::string_view text);

// Whether `host` is a name or an address of this machine. May ask a name server.
bool is_this_host(const std::string& host);
// Those of this machine's interfaces that others may reach it at; loopback only when there is no other.
std::vector<std::string> own_addresses();

struct Listener {
  std::vector<tools::UniqueFd> sockets;  // non-blocking; none, or one for each address
  int port = 0;
  int error = 0;  // errno, when there is no socket
};
// At these addresses, in digits, of which "" is all. Port 0: one that the kernel chooses.
Listener listen_on(const std::vector<std::string>& addresses, int port);

struct Connection {
  tools::UniqueFd socket;
  std::string peer_address;  // numeric
  std::string error;         // why there is no socket
};
// Tries all addresses of the host once. Blocks for `timeout` at most, and as long as a name server takes.
Connection connect_to(const Endpoint& endpoint, std::chrono::milliseconds timeout);

// The numeric address at the other end of a connected socket.
std::string peer_address(int socket);

}  // namespace col::launch

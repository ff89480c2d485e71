// Addresses at which the nodes of a job meet.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "common/unique_fd.hpp"

namespace col::launch {

// torchrun's port, for an endpoint without one
inline constexpr int kDefaultPort = 29400;

struct Endpoint {
  std::string host;
  int port = kDefaultPort;
  // "node7:29400", "[fd00::1]:29400"
  std::string text() const;
};

template <class Visit>
void fields(Endpoint& endpoint, Visit& visit) {
  auto& [host, port] = endpoint;
  visit("host", host);
  visit("port", port);
}

// Parses "host:port", "host", "[address]:port". Throws LaunchError (2) for anything else.
Endpoint parse_endpoint(std::string_view text);

// Whether `host` is a name or an address of this machine. May ask a name server.
bool is_this_host(const std::string& host);
// The addresses of this machine's interfaces at which others may reach it; loopback only if there is no other.
std::vector<std::string> own_addresses();

// A TCP port of the loopback interface that is free now, chosen by the kernel: of 127.0.0.1, or of ::1 where the
// interface has no other address. Throws LaunchError (125).
Endpoint pick_free_port();

struct Connection {
  tools::UniqueFd socket;
  std::string peer_address;  // numeric
  std::string error;         // why there is no socket
};
// Tries all addresses of the host once. Blocks for `timeout` at most, plus the time that a name server takes.
Connection connect_to(const Endpoint& endpoint, std::chrono::milliseconds timeout);

}  // namespace col::launch

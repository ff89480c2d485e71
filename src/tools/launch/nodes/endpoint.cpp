#include "launch/nodes/endpoint.hpp"

#include <netdb.h>
#include <poll.h>
#include <string.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "common/numbers.hpp"
#include "launch/job/assignment.hpp"
#include "launch/job/launch_error.hpp"
#include "net/address.hpp"
#include "net/connect.hpp"
#include "net/interfaces.hpp"
#include "net/listener.hpp"
#include "net/stream.hpp"

namespace col::launch {
namespace {

using tools::UniqueFd;

net::Addresses resolve(const std::string& host, int port, std::string& error) {
  std::string why;
  // Where the machine has nothing but its loopback interface, AI_ADDRCONFIG finds no address of localhost.
  for (const int flags : {AI_ADDRCONFIG, 0}) {
    if (net::Addresses found = net::resolve(host, port, flags, why)) return found;
  }
  error = fmt::format("cannot find the address of '{}': {}", host, why);
  return {nullptr, &::freeaddrinfo};
}

std::vector<std::string> interface_addresses(bool loopback) {
  std::vector<std::string> addresses;
  for (const net::Interface& interface : net::list_interfaces()) {
    if (interface.up && interface.loopback == loopback) addresses.push_back(interface.address);
  }
  return addresses;
}

UniqueFd connect_one(const addrinfo& address, std::chrono::milliseconds timeout, int& error) {
  UniqueFd socket = net::make_socket(address.ai_family);
  error = socket ? net::begin_connect(socket.get(), address.ai_addr, address.ai_addrlen) : errno;
  if (error == 0) error = net::wait_for(socket.get(), POLLOUT, timeout) ? net::end_of_connect(socket.get()) : ETIMEDOUT;
  if (error != 0) return {};
  net::set_no_delay(socket.get());
  return socket;
}

}  // namespace

std::string Endpoint::text() const {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

Endpoint parse_endpoint(std::string_view text) {
  const auto refuse = [&] {
    throw LaunchError(tools::exit_code::kUsage, "'{}' is no endpoint; write host:port, such as node0:{}", text,
                      kDefaultPort);
  };
  Endpoint endpoint;
  std::string_view rest;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) refuse();
    endpoint.host = text.substr(1, end - 1);
    rest = text.substr(end + 1);
  } else {
    // More than one colon and no brackets: an IPv6 address without a port.
    const std::size_t colon = text.find(':') == text.rfind(':') ? text.find(':') : std::string_view::npos;
    endpoint.host = text.substr(0, colon);
    rest = colon == std::string_view::npos ? std::string_view() : text.substr(colon);
  }
  if (endpoint.host.empty()) refuse();
  if (rest.empty()) return endpoint;
  const auto port = rest.starts_with(':') ? tools::parse_whole_number(rest.substr(1), 1, 65535) : std::nullopt;
  if (!port) refuse();
  endpoint.port = *port;
  return endpoint;
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> addresses = interface_addresses(/*loopback=*/false);
  return addresses.empty() ? interface_addresses(/*loopback=*/true) : addresses;
}

bool is_this_host(const std::string& host) {
  if (host == "localhost" || host == host_name()) return true;
  std::string error;
  const net::Addresses found = resolve(host, 0, error);
  const std::vector<net::Interface> own = net::list_interfaces();
  for (const addrinfo* entry = found.get(); entry != nullptr; entry = entry->ai_next) {
    const std::string address = net::numeric_address(entry->ai_addr, entry->ai_addrlen);
    const auto has_it = [&](const net::Interface& interface) { return interface.up && interface.address == address; };
    if (address.starts_with("127.") || std::ranges::any_of(own, has_it)) return true;
  }
  return false;
}

Endpoint pick_free_port() {
  int error = 0;
  for (const char* const address : {"127.0.0.1", "::1"}) {
    const net::Listener found = net::listen_on({address}, 0);
    if (!found.sockets.empty()) return {address, found.port};
    if (error == 0) error = found.error;
  }
  throw LaunchError(tools::exit_code::kLauncher,
                    "cannot get a free port for MASTER_PORT, of 127.0.0.1 nor of ::1: {}; the loopback interface must "
                    "be up (ip link set lo up)",
                    strerror(error));
}

Connection connect_to(const Endpoint& endpoint, std::chrono::milliseconds timeout) {
  Connection connection;
  const net::Addresses found = resolve(endpoint.host, endpoint.port, connection.error);
  int count = 0;
  for (const addrinfo* entry = found.get(); entry != nullptr; entry = entry->ai_next) ++count;
  for (const addrinfo* entry = found.get(); entry != nullptr; entry = entry->ai_next) {
    int error = 0;
    connection.socket = connect_one(*entry, timeout / count, error);
    if (connection.socket) {
      connection.peer_address = net::numeric_peer(connection.socket.get());
      return connection;
    }
    connection.error = fmt::format("cannot connect to {}: {}", endpoint.text(), strerror(error));
  }
  return connection;
}

}  // namespace col::launch

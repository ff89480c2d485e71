#include "launch/nodes/endpoint.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "common/numbers.hpp"
#include "core/clock/clock.hpp"
#include "launch/job/assignment.hpp"
#include "launch/job/launch_error.hpp"

namespace col::launch {
namespace {

using tools::UniqueFd;

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses resolve(const std::string& host, int port, std::string& error) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* list = nullptr;
  // Where the machine has nothing but its loopback interface, AI_ADDRCONFIG finds no address of localhost.
  int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (code != 0) {
    hints.ai_flags = 0;
    code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  }
  if (code != 0) error = fmt::format("cannot find the address of '{}': {}", host, ::gai_strerror(code));
  return Addresses(code == 0 ? list : nullptr);
}

std::string numeric(const sockaddr* address, socklen_t length) {
  std::array<char, NI_MAXHOST> text{};
  if (::getnameinfo(address, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) return {};
  std::string_view name = text.data();
  // An IPv4 peer of a socket that takes both.
  constexpr std::string_view kMapped = "::ffff:";
  if (name.starts_with(kMapped)) name.remove_prefix(kMapped.size());
  return std::string(name);
}

struct FreeInterfaces {
  void operator()(ifaddrs* list) const { ::freeifaddrs(list); }
};

std::vector<std::string> interface_addresses(bool loopback) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, FreeInterfaces> owner(list);
  std::vector<std::string> addresses;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    if (((entry->ifa_flags & IFF_LOOPBACK) != 0) != loopback) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    // Of no use without the name of an interface of the other side.
    const auto* six = reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr);
    if (family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr)) continue;
    addresses.push_back(numeric(entry->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6)));
  }
  return addresses;
}

UniqueFd connect_one(const addrinfo& address, std::chrono::milliseconds timeout, int& error) {
  UniqueFd socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) {
    error = errno;
    return {};
  }
  if (::connect(socket.get(), address.ai_addr, address.ai_addrlen) != 0) {
    error = errno;
    if (error != EINPROGRESS) return {};
    pollfd waiting{socket.get(), POLLOUT, 0};
    error = ETIMEDOUT;
    if (core::poll_for({&waiting, 1}, timeout) <= 0) return {};
    socklen_t length = sizeof error;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) return {};
  }
  // A port of the ephemeral range can connect to itself when nobody listens there yet.
  if (peer_address(socket.get()).empty()) return {};
  sockaddr_storage own{}, peer{};
  socklen_t own_length = sizeof own, peer_length = sizeof peer;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &own_length);
  ::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&peer), &peer_length);
  error = ECONNREFUSED;
  if (own_length == peer_length && std::memcmp(&own, &peer, own_length) == 0) return {};
  const int yes = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return socket;
}

// Listens at `address`, in digits, or everywhere when it is empty, and says at which port.
UniqueFd listen_at(const std::string& address, int& port, int& error) {
  error = EADDRNOTAVAIL;
  // One socket for IPv4 and IPv6; IPv4 alone where the kernel has no other.
  for (const char* wildcard : {"::", "0.0.0.0"}) {
    std::string unresolved;
    const Addresses found = resolve(address.empty() ? wildcard : address, port, unresolved);
    if (!found) continue;
    UniqueFd socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int yes = 1, no = 0;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (found->ai_family == AF_INET6) ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    sockaddr_storage bound{};
    socklen_t length = sizeof bound;
    if (socket && ::bind(socket.get(), found->ai_addr, found->ai_addrlen) == 0 &&
        ::listen(socket.get(), SOMAXCONN) == 0 &&
        ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &length) == 0) {
      port = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                               : reinterpret_cast<sockaddr_in&>(bound).sin_port);
      error = 0;
      return socket;
    }
    error = errno;
    if (!address.empty() || error == EADDRINUSE || error == EACCES) break;
  }
  return {};
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
  const Addresses found = resolve(host, 0, error);
  std::vector<std::string> own = interface_addresses(/*loopback=*/false);
  const std::vector<std::string> loopback = interface_addresses(/*loopback=*/true);
  own.insert(own.end(), loopback.begin(), loopback.end());
  for (const addrinfo* entry = found.get(); entry != nullptr; entry = entry->ai_next) {
    const std::string address = numeric(entry->ai_addr, entry->ai_addrlen);
    if (std::ranges::find(own, address) != own.end()) return true;
    if (address.starts_with("127.")) return true;
  }
  return false;
}

Listener listen_on(const std::vector<std::string>& addresses, int port) {
  Listener listener;
  listener.port = port;
  for (const std::string& address : addresses) {
    UniqueFd socket = listen_at(address, listener.port, listener.error);
    if (!socket) {
      listener.sockets.clear();
      return listener;
    }
    listener.sockets.push_back(std::move(socket));
  }
  return listener;
}

Endpoint pick_free_port() {
  int error = 0;
  for (const char* const address : {"127.0.0.1", "::1"}) {
    const Listener found = listen_on({address}, 0);
    if (!found.sockets.empty()) return {address, found.port};
    if (error == 0) error = found.error;
  }
  throw LaunchError(tools::exit_code::kLauncher,
                    "cannot get a free port for MASTER_PORT, of 127.0.0.1 nor of ::1: {}; the loopback interface must "
                    "be up (ip link set lo up)",
                    strerror(error));
}

std::string peer_address(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) return {};
  return numeric(reinterpret_cast<const sockaddr*>(&address), length);
}

Connection connect_to(const Endpoint& endpoint, std::chrono::milliseconds timeout) {
  Connection connection;
  const Addresses found = resolve(endpoint.host, endpoint.port, connection.error);
  int count = 0;
  for (const addrinfo* entry = found.get(); entry != nullptr; entry = entry->ai_next) ++count;
  for (const addrinfo* entry = found.get(); entry != nullptr; entry = entry->ai_next) {
    int error = 0;
    connection.socket = connect_one(*entry, timeout / count, error);
    if (connection.socket) {
      connection.peer_address = peer_address(connection.socket.get());
      return connection;
    }
    connection.error = fmt::format("cannot connect to {}: {}", endpoint.text(), strerror(error));
  }
  return connection;
}

}  // namespace col::launch

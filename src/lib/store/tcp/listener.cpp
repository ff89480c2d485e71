#include "store/tcp/socket.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <col/error.hpp>
#include <col/store.hpp>

#include "core/clock/scheduler.hpp"
#include "store/tcp/endpoint.hpp"

namespace col {
namespace store::tcp {
namespace {

constexpr int kBacklog = 4096;

// A socket can be bound to it.
bool is_of_this_host(const addrinfo& address) {
  const core::UniqueFd probe(::socket(address.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return probe && ::bind(probe.get(), address.ai_addr, address.ai_addrlen) == 0;
}

bool is_loopback(const addrinfo& address) {
  if (address.ai_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in*>(address.ai_addr)->sin_addr.s_addr) >> 24 == 127;
  return address.ai_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address.ai_addr)->sin6_addr);
}

bool means_loopback(const std::string& host) {
  std::string why;
  return host == "localhost" || host.ends_with(".localhost") || resolve(host, 0, AI_NUMERICHOST, why) != nullptr;
}

int port_of(int socket) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size) != 0) return 0;
  return ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                           : reinterpret_cast<sockaddr_in&>(bound).sin_port);
}

// Empty, and `why`, when nobody can listen there.
core::UniqueFd listen_at(const std::string& address, int port, std::string& why) {
  const Addresses addresses = resolve(address, port, AI_PASSIVE, why);
  // The wildcard of IPv6 takes clients of both kinds.
  for (const bool six : {true, false}) {
    for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
      if ((a->ai_family == AF_INET6) != six) continue;
      core::UniqueFd socket = make_socket(a->ai_family);
      const int on = 1, off = 0;
      if (six) ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
      ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      if (socket && ::bind(socket.get(), a->ai_addr, a->ai_addrlen) == 0 && ::listen(socket.get(), kBacklog) == 0)
        return socket;
      why = std::generic_category().message(errno);
    }
  }
  return {};
}

// In words, and not by an address. The resolver takes "*" for the loopback address, or for all.
bool is_any(const std::string& host) {
  return host.empty() || host == "*";
}

// Nothing if `host` is not a wildcard; else its family, and AF_UNSPEC for both.
std::optional<int> wildcard_family(const std::string& host) {
  if (is_any(host)) return AF_UNSPEC;
  std::string why;
  const Addresses address = resolve(host, 0, AI_NUMERICHOST, why);
  if (!address) return std::nullopt;
  if (address->ai_family == AF_INET)
    return reinterpret_cast<const sockaddr_in*>(address->ai_addr)->sin_addr.s_addr == INADDR_ANY
               ? std::optional(AF_INET)
               : std::nullopt;
  const auto& six = reinterpret_cast<const sockaddr_in6*>(address->ai_addr)->sin6_addr;
  return address->ai_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&six) ? std::optional(AF_UNSPEC) : std::nullopt;
}

// The address of this host on the way to `other`, to which nothing is sent; empty if there is no way.
std::string address_towards(const std::string& other) {
  std::string why;
  const Addresses address = resolve(other, 9, AI_NUMERICHOST, why);
  if (!address) return {};
  const core::UniqueFd probe(::socket(address->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (!probe || ::connect(probe.get(), address->ai_addr, address->ai_addrlen) != 0 ||
      ::getsockname(probe.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0)
    return {};
  return numeric_address(reinterpret_cast<const sockaddr*>(&own), size);
}

}  // namespace

std::string host_for_others(const std::string& host) {
  const std::optional<int> family = wildcard_family(host);
  if (!family) return host;
  // Addresses for documents, at which nobody is: the way to them is that to any other network.
  std::string own = address_towards("192.0.2.1");
  if (own.empty() && *family == AF_UNSPEC) own = address_towards("2001:db8::1");
  return own.empty() ? "127.0.0.1" : own;
}

Listener listen_on(const std::string& host, int port) {
  if (core::Scheduler* const simulated = core::scheduler()) {
    Listener listener{.sockets = {}, .port = port};
    listener.sockets.emplace_back(simulated->listen(host, port));
    return listener;
  }
  std::vector<std::string> addresses = listen_addresses(host).value_or(std::vector{host});
  if (addresses.empty()) addresses.emplace_back();  // all
  Listener listener{.sockets = {}, .port = port};
  for (const std::string& address : addresses) {
    std::string why;
    core::UniqueFd socket = listen_at(address, listener.port, why);
    if (!socket)
      throw Error(ErrorCode::io, fmt::format("cannot listen on {} for the store ({}); name an address of this host and "
                                             "a port that nobody has, or port 0 for any",
                                             address.empty() ? fmt::format("port {}", listener.port)
                                                             : Endpoint{address, listener.port}.url(),
                                             why));
    listener.port = port_of(socket.get());
    listener.sockets.push_back(std::move(socket));
  }
  return listener;
}

}  // namespace store::tcp

std::optional<std::vector<std::string>> listen_addresses(const std::string& host) {
  using namespace store::tcp;
  std::vector<std::string> own;
  if (is_any(host)) return own;
  bool is_elsewhere = true, all_loopback = true;
  std::string why;
  const Addresses addresses = resolve(host, 0, 0, why);
  for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
    if (!is_of_this_host(*a)) continue;
    is_elsewhere = false;
    all_loopback = all_loopback && is_loopback(*a);
    std::string address = numeric_address(a->ai_addr, a->ai_addrlen);
    if (std::find(own.begin(), own.end(), address) == own.end()) own.push_back(std::move(address));
  }
  if (is_elsewhere) return std::nullopt;
  if (all_loopback && !means_loopback(host)) own.clear();
  return own;
}

}  // namespace col

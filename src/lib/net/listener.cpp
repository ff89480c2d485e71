#include "net/listener.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include <col/store.hpp>

#include "core/clock/scheduler.hpp"
#include "net/address.hpp"
#include "net/connect.hpp"

namespace col {
namespace net {
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

// Empty, with `error` and `why`, when nobody can listen there.
core::UniqueFd listen_at(const std::string& address, Listener& listener) {
  const Addresses addresses = resolve(address, listener.port, AI_PASSIVE, listener.why);
  listener.error = EADDRNOTAVAIL;
  // The wildcard of IPv6 takes clients of both kinds.
  for (const int family : {AF_INET6, AF_INET}) {
    for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
      if (a->ai_family != family) continue;
      core::UniqueFd socket = net::listen_at(a->ai_addr, a->ai_addrlen);
      listener.error = socket ? 0 : errno;
      listener.port = socket ? port_of(a->ai_addr) : listener.port;
      if (socket) return socket;
      listener.why = std::generic_category().message(listener.error);
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

core::UniqueFd listen_at(sockaddr* address, socklen_t size) noexcept {
  core::UniqueFd socket = make_socket(address->sa_family);
  if (!socket) return socket;
  const int on = 1, off = 0;
  if (address->sa_family == AF_INET6) ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket.get(), address, size) == 0 && ::listen(socket.get(), kBacklog) == 0 &&
      ::getsockname(socket.get(), address, &size) == 0)
    return socket;
  const int error = errno;
  socket.reset();
  errno = error;
  return socket;
}

Listener listen_on(const std::vector<std::string>& addresses, int port) {
  Listener listener{.sockets = {}, .port = port};
  core::Scheduler* const simulated = core::scheduler();
  for (const std::string& address : addresses) {
    core::UniqueFd socket =
        simulated != nullptr ? core::UniqueFd(simulated->listen(address, port)) : listen_at(address, listener);
    if (!socket) {
      listener.sockets.clear();
      listener.failed = address;
      return listener;
    }
    listener.sockets.push_back(std::move(socket));
  }
  return listener;
}

core::UniqueFd accept(int listener) noexcept {
  for (;;) {
    core::UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    // One that has gone already.
    if (socket || (errno != ECONNABORTED && errno != EINTR)) return socket;
  }
}

}  // namespace net

std::optional<std::vector<std::string>> listen_addresses(const std::string& host) {
  using namespace net;
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

#include "net/connect.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cstring>

namespace col::net {
namespace {

// A port of the kernel's own range at which nobody listens may connect to itself.
bool is_itself(int fd) noexcept {
  sockaddr_storage own{}, other{};
  socklen_t own_size = sizeof own, other_size = sizeof other;
  return ::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_size) == 0 &&
         ::getpeername(fd, reinterpret_cast<sockaddr*>(&other), &other_size) == 0 && own_size == other_size &&
         std::memcmp(&own, &other, own_size) == 0;
}

}  // namespace

core::UniqueFd make_socket(int family) noexcept {
  return core::UniqueFd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

int begin_connect(int fd, const sockaddr* address, socklen_t size) noexcept {
  return ::connect(fd, address, size) == 0 || errno == EINPROGRESS || errno == EINTR ? 0 : errno;
}

int end_of_connect(int fd) noexcept {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error == 0 && is_itself(fd) ? ECONNREFUSED : error;
}

void set_no_delay(int fd) noexcept {
  constexpr int kOn = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &kOn, sizeof kOn);
}

void set_keep_alive(int fd) noexcept {
  constexpr int kOn = 1, kIdleSeconds = 20, kIntervalSeconds = 10, kProbes = 4;
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &kOn, sizeof kOn);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &kIdleSeconds, sizeof kIdleSeconds);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &kIntervalSeconds, sizeof kIntervalSeconds);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &kProbes, sizeof kProbes);
  constexpr unsigned kUserTimeoutMs = 60'000;  // what was sent and is not acknowledged
  ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUserTimeoutMs, sizeof kUserTimeoutMs);
}

}  // namespace col::net

#include "store/tcp/socket.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <col/error.hpp>

#include "core/clock/clock.hpp"
#include "core/duration.hpp"
#include "store/base/text.hpp"

namespace col::store::tcp {
namespace {

using namespace std::chrono_literals;

std::string text_of(int error) {
  return std::generic_category().message(error);
}

// Between two tries: a server that starts is noticed at once, one that never does costs little.
constexpr Duration kFirstRetry = 2ms;
constexpr Duration kLongestRetry = 200ms;
// For one address of a host, since a packet filter may swallow what is sent to it.
constexpr Duration kAddressPatience = 5s;

[[noreturn]] void throw_exhausted(int error) {
  throw Error(ErrorCode::resource, fmt::format("cannot make a socket for the store ({}); raise the limit of open files "
                                               "(ulimit -n), or close some",
                                               text_of(error)));
}

// A port of the kernel's own range at which nobody listens may connect to itself.
bool is_itself(int fd) noexcept {
  sockaddr_storage own{}, other{};
  socklen_t own_size = sizeof own, other_size = sizeof other;
  return ::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_size) == 0 &&
         ::getpeername(fd, reinterpret_cast<sockaddr*>(&other), &other_size) == 0 && own_size == other_size &&
         std::memcmp(&own, &other, own_size) == 0;
}

// Waits for the end of a connect(2) that is under way; its error.
int end_of_connect(int fd, Patience& patience) {
  const Deadline enough = Deadline::after(kAddressPatience);
  patience.explain("nothing answers there");
  while (!poll_for(fd, POLLOUT, patience.slice())) {
    if (enough.expired()) return ETIMEDOUT;
    patience.check();
  }
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

core::UniqueFd try_address(const addrinfo& address, Patience& patience, std::string& why) {
  core::UniqueFd fd = make_socket(address.ai_family);
  int error = fd ? 0 : errno;
  if (fd && ::connect(fd.get(), address.ai_addr, address.ai_addrlen) != 0)
    error = errno == EINPROGRESS || errno == EINTR ? end_of_connect(fd.get(), patience) : errno;
  if (error == 0 && is_itself(fd.get())) error = ECONNREFUSED;
  if (error == 0) return fd;
  why = text_of(error);
  return {};
}

void make_blocking(int fd) noexcept {
  const timeval timeout{.tv_sec = 0,
                        .tv_usec = std::chrono::duration_cast<std::chrono::microseconds>(kReceiveTimeout).count()};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
}

core::UniqueFd try_once(const Endpoint& endpoint, Patience& patience, std::string& why) {
  if (core::Scheduler* const simulated = core::scheduler()) {
    core::UniqueFd fd(simulated->connect(endpoint.host, endpoint.port));
    if (!fd) why = text_of(errno);
    return fd;
  }
  const Addresses addresses = resolve(endpoint.host, endpoint.port, 0, why);
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    if (core::UniqueFd fd = try_address(*address, patience, why)) {
      set_options(fd.get());
      make_blocking(fd.get());
      return fd;
    }
  }
  return {};
}

}  // namespace

Addresses resolve(const std::string& host, int port, int flags, std::string& why) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) why = error == EAI_SYSTEM ? text_of(errno) : ::gai_strerror(error);
  return {error == 0 ? found : nullptr, &::freeaddrinfo};
}

core::UniqueFd make_socket(int family) {
  core::UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) throw_exhausted(errno);
  return fd;
}

Patience Patience::part(Duration budget, std::string_view what) const {
  Patience part = *this;
  part.what_ = what;
  const Deadline sooner = Deadline::after(budget);
  if (sooner.at() < deadline_.at()) part.deadline_ = sooner;
  return part;
}

Duration Patience::slice() noexcept {
  return std::min(wait_ != nullptr ? wait_->slice() : kReceiveTimeout, deadline_.remaining());
}

void Patience::check() {
  if (wait_ != nullptr) wait_->check();
  if (!deadline_.expired()) return;
  throw Error(
      ErrorCode::timeout,
      fmt::format("the store at {} has not {} within {}{}; see whether its process runs (rank 0, or the launcher "
                  "on the first host) and this host can reach it, or allow more time (COL_TIMEOUT)",
                  url_, what_, core::format_duration(deadline_.budget()),
                  why_.empty() ? "" : fmt::format(" ({})", why_)));
}

void Patience::explain(std::string why) {
  why_ = std::move(why);
  if (wait_ == nullptr) return;
  if (!why_.empty())
    wait_->describe(
        fmt::format("{}, as the store at {} cannot be reached ({})", what_.empty() ? "the others" : what_, url_, why_));
  else if (!what_.empty())
    wait_->describe(std::string(what_));
}

bool poll_for(int fd, short events, Duration budget) noexcept {
  pollfd entry{fd, events, 0};
  return core::poll_for({&entry, 1}, budget) > 0;
}

core::UniqueFd connect_to(const Endpoint& endpoint, Patience& patience, bool once) {
  std::string why;
  for (Duration pause = kFirstRetry;; pause = std::min(2 * pause, kLongestRetry)) {
    if (core::UniqueFd fd = try_once(endpoint, patience, why)) {
      patience.explain({});
      return fd;
    }
    if (once)
      throw Error(ErrorCode::io, fmt::format("the store at {} cannot be reached any more ({}); its process has ended, "
                                             "or the network is gone: look at it, and start the job again",
                                             endpoint.url(), why));
    patience.explain(why);
    patience.check();
    core::sleep_for(std::min(pause, patience.slice()));
  }
}

std::string numeric_address(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  if (::getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) return "somewhere";
  return text.data();
}

std::string numeric_peer(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "somewhere";
  return numeric_address(reinterpret_cast<const sockaddr*>(&address), size);
}

void set_options(int fd) noexcept {
  constexpr int kOn = 1, kIdleSeconds = 20, kIntervalSeconds = 10, kProbes = 4;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &kOn, sizeof kOn);
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &kOn, sizeof kOn);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &kIdleSeconds, sizeof kIdleSeconds);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &kIntervalSeconds, sizeof kIntervalSeconds);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &kProbes, sizeof kProbes);
  constexpr unsigned kUserTimeoutMs = 60'000;  // what was sent and is not acknowledged
  ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUserTimeoutMs, sizeof kUserTimeoutMs);
}

}  // namespace col::store::tcp

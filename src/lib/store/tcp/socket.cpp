#include "store/tcp/socket.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/error.hpp>
#include <col/store.hpp>

#include "core/clock/clock.hpp"
#include "core/duration.hpp"
#include "net/address.hpp"
#include "net/connect.hpp"
#include "net/stream.hpp"
#include "store/base/text.hpp"

namespace col::store::tcp {
namespace {

// Between two tries: a server that starts is noticed at once, one that never does costs little.
constexpr Duration kFirstRetry = std::chrono::milliseconds(2), kLongestRetry = std::chrono::milliseconds(200);
// For one address of a host, since a packet filter may swallow what is sent to it.
constexpr Duration kAddressPatience = std::chrono::seconds(5);

std::string text_of(int error) {
  return std::generic_category().message(error);
}

[[noreturn]] void throw_exhausted(int error) {
  throw Error(ErrorCode::resource, fmt::format("cannot make a socket for the store ({}); raise the limit of open files "
                                               "(ulimit -n), or close some",
                                               text_of(error)));
}

// Waits for the end of a connect(2) that has begun; its error.
int end_of_connect(int fd, Patience& patience) {
  const Deadline enough = Deadline::after(kAddressPatience);
  patience.explain("nothing answers there");
  while (!net::wait_for(fd, POLLOUT, patience.slice())) {
    if (enough.expired()) return ETIMEDOUT;
    patience.check();
  }
  return net::end_of_connect(fd);
}

core::UniqueFd try_address(const addrinfo& address, Patience& patience, std::string& why) {
  core::UniqueFd fd = net::make_socket(address.ai_family);
  if (!fd && net::is_exhausted(errno)) throw_exhausted(errno);
  int error = fd ? net::begin_connect(fd.get(), address.ai_addr, address.ai_addrlen) : errno;
  if (error == 0) error = end_of_connect(fd.get(), patience);
  if (error == 0) return fd;
  why = text_of(error);
  return {};
}

// With a timeout in the kernel.
void make_blocking(int fd) noexcept {
  const timeval timeout{
      .tv_sec = 0, .tv_usec = std::chrono::duration_cast<std::chrono::microseconds>(Patience::kLongestSlice).count()};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
}

core::UniqueFd try_once(const net::Endpoint& endpoint, Patience& patience, std::string& why) {
  if (core::Scheduler* const simulated = core::scheduler()) {
    core::UniqueFd fd(simulated->connect(endpoint.host, endpoint.port));
    if (!fd) why = text_of(errno);
    return fd;
  }
  const net::Addresses addresses = net::resolve(endpoint.host, endpoint.port, 0, why);
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    if (core::UniqueFd fd = try_address(*address, patience, why)) {
      net::set_no_delay(fd.get());
      net::set_keep_alive(fd.get());
      make_blocking(fd.get());
      return fd;
    }
  }
  return {};
}

}  // namespace

Patience Patience::part(Duration budget, std::string_view what) const {
  Patience part = *this;
  part.what_ = what;
  const Deadline sooner = Deadline::after(budget);
  if (sooner.at() < deadline_.at()) part.deadline_ = sooner;
  return part;
}

Duration Patience::slice() noexcept {
  return std::min(wait_ != nullptr ? wait_->slice() : kLongestSlice, deadline_.remaining());
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

std::string url_of(const net::Endpoint& endpoint) {
  return "tcp://" + printable(endpoint.text());
}

core::UniqueFd connect_to(const net::Endpoint& endpoint, Patience& patience, bool once) {
  std::string why;
  for (Duration pause = kFirstRetry;; pause = std::min(2 * pause, kLongestRetry)) {
    if (core::UniqueFd fd = try_once(endpoint, patience, why)) {
      patience.explain({});
      return fd;
    }
    if (once)
      throw Error(ErrorCode::io, fmt::format("the store at {} cannot be reached any more ({}); its process has ended, "
                                             "or the network is gone: look at it, and start the job again",
                                             url_of(endpoint), why));
    patience.explain(why);
    patience.check();
    core::sleep_for(std::min(pause, patience.slice()));
  }
}

net::Listener listen_on(const std::string& host, int port) {
  std::vector<std::string> addresses = {host};
  if (core::scheduler() == nullptr) addresses = listen_addresses(host).value_or(addresses);
  if (addresses.empty()) addresses.emplace_back();  // all
  net::Listener listener = net::listen_on(addresses, port);
  if (!listener.sockets.empty()) return listener;
  if (net::is_exhausted(listener.error)) throw_exhausted(listener.error);
  throw Error(ErrorCode::io,
              fmt::format("cannot listen on {} for the store ({}); name an address of this host and a port that nobody "
                          "has, or port 0 for any",
                          listener.failed.empty() ? fmt::format("port {}", listener.port)
                                                  : url_of({listener.failed, listener.port}),
                          listener.why));
}

}  // namespace col::store::tcp

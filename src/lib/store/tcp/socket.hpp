// Sockets of the TCP store: connecting, and waiting for bytes with a deadline.
#pragma once

#include <netdb.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include <col/job.hpp>

#include "core/unique_fd.hpp"
#include "store/tcp/endpoint.hpp"

namespace col::store::tcp {

// How long a client blocks: until a deadline, and no longer than a WaitContext says.
class Patience {
 public:
  // `url` is that of the store, for the message of the timeout.
  Patience(Deadline deadline, std::string_view url, std::string_view what)
      : deadline_(deadline), url_(url), what_(what) {}
  // `what` is waited for, in words.
  Patience(WaitContext& wait, std::string_view url, std::string_view what)
      : deadline_(wait.deadline()), url_(url), what_(what), wait_(&wait) {
    explain({});
  }

  // The same for a part of it, which must not take longer than `budget`.
  Patience part(Duration budget, std::string_view what) const;

  // How long to sleep before the next check().
  Duration slice() noexcept;
  // Throws timeout, or what WaitContext::check() does, when it is at its end.
  void check();
  // Why nothing has come of it so far: "Connection refused"; empty: all is well. Part of the timeout's message.
  void explain(std::string why);

 private:
  Deadline deadline_;
  std::string_view url_;
  std::string_view what_;
  std::string why_;
  WaitContext* wait_ = nullptr;
};

// Sleeps until `fd` has one of `events` or an error, or for `budget`; whether it has.
bool poll_for(int fd, short events, Duration budget) noexcept;

// How long a read of a connected socket blocks in the kernel: the longest slice of a WaitContext.
inline constexpr Duration kReceiveTimeout = std::chrono::milliseconds(50);

// A socket that is connected, blocking with that timeout, and close-on-exec. Tries again for as long as there is
// patience: the server, or the name of its host, may not be there yet; with `once` every address is tried once, and the
// failure is thrown as io. Blocks longer only in the resolver, for as long as its configuration lets it. Errors: those
// of Patience; resource.
core::UniqueFd connect_to(const Endpoint& endpoint, Patience& patience, bool once);

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;
// What the resolver says of `host` (all interfaces when it is empty) with these flags; null: nothing, and `why`.
Addresses resolve(const std::string& host, int port, int flags, std::string& why);
// Non-blocking and close-on-exec. Throws resource when descriptors or memory are used up; else empty, with errno.
core::UniqueFd make_socket(int family);

// An address in digits.
std::string numeric_address(const sockaddr* address, socklen_t size);
// The address at the other end of a connected socket, in digits; "somewhere" when it has left.
std::string numeric_peer(int fd);

// Answers are short and waited for, and a host that is gone says nothing.
void set_options(int fd) noexcept;

}  // namespace col::store::tcp

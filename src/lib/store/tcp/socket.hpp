// Sockets of the TCP store: connecting, listening, and waiting for bytes with a deadline.
#pragma once

#include <netdb.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <col/job.hpp>

#include "core/export/module_export.hpp"
#include "core/unique_fd.hpp"
#include "store/tcp/endpoint.hpp"

namespace col::store::tcp {

// How long a client blocks: until a deadline, and no longer than its WaitContext allows.
class Patience {
 public:
  // `url` is the URL of the store, for the message of the timeout.
  Patience(Deadline deadline, std::string_view url, std::string_view what)
      : deadline_(deadline), url_(url), what_(what) {}
  // `what` says in words what the client waits for.
  Patience(WaitContext& wait, std::string_view url, std::string_view what)
      : deadline_(wait.deadline()), url_(url), what_(what), wait_(&wait) {
    explain({});
  }
  // The same, for a wait that its caller has described.
  Patience(WaitContext& wait, std::string_view url) : deadline_(wait.deadline()), url_(url), wait_(&wait) {}

  // The same for a part of the work, which must not take longer than `budget`.
  Patience part(Duration budget, std::string_view what) const;

  // How long to sleep before the next check().
  Duration slice() noexcept;
  // Throws timeout, or what WaitContext::check() throws, if the time is over.
  void check();
  // Sets why there is no success so far: "Connection refused". Empty: all is well. It becomes part of the timeout's
  // message.
  void explain(std::string why);

 private:
  Deadline deadline_;
  std::string_view url_;
  std::string_view what_;
  std::string why_;
  WaitContext* wait_ = nullptr;
};

// Sleeps until `fd` has one of `events` or an error, or for `budget`. Returns whether it has.
bool poll_for(int fd, short events, Duration budget) noexcept;

// How long a read of a connected socket blocks in the kernel: the longest slice of a WaitContext.
inline constexpr Duration kReceiveTimeout = std::chrono::milliseconds(50);

// A connected socket: blocking with that timeout, and close-on-exec. It tries again until `patience` ends, because the
// server, or the name of its host, may not exist yet. With `once`, every address is tried once, and a failure throws
// io. It blocks longer only in the resolver, as long as the resolver's configuration allows. Errors: those of Patience;
// resource.
core::UniqueFd connect_to(const Endpoint& endpoint, Patience& patience, bool once);

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;
// The resolver's answer for `host` (all interfaces if it is empty) with these flags. Null if there is none; `why` then
// has the reason.
Addresses resolve(const std::string& host, int port, int flags, std::string& why);
// Non-blocking and close-on-exec. Throws resource if descriptors or memory are used up. After other failures it is
// empty, and errno is set.
core::UniqueFd make_socket(int family);

struct Listener {
  std::vector<core::UniqueFd> sockets;  // non-blocking; one for each address
  int port = 0;
};

// Listens at listen_addresses(host); port 0: one that the kernel chooses. Throws io or resource.
Listener listen_on(const std::string& host, int port);
// The host that clients are told where a server listens at `host`: another one if that means all addresses.
std::string host_for_others(const std::string& host);

// An address in digits.
std::string numeric_address(const sockaddr* address, socklen_t size);
// The address at the other end of a connected socket, in digits; "somewhere" if the other end has left.
COL_MODULE_EXPORT std::string numeric_peer(int fd);

// Sets the options for short answers that somebody waits for, and for noticing a host that is gone silently.
void set_options(int fd) noexcept;

}  // namespace col::store::tcp

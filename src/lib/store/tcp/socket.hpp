// Sockets of the TCP store: those of net, with the store's words for what goes wrong and its waits.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include <col/job.hpp>

#include "core/unique_fd.hpp"
#include "net/endpoint.hpp"
#include "net/listener.hpp"

namespace col::store::tcp {

// How long a client blocks: until a deadline, and no longer than its WaitContext allows.
class Patience {
 public:
  // The longest slice(), and that of a WaitContext.
  static constexpr Duration kLongestSlice = std::chrono::milliseconds(50);

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

// "tcp://host:port", for messages too.
std::string url_of(const net::Endpoint& endpoint);

// A connected socket: blocking, with Patience::kLongestSlice as its timeout, and close-on-exec. It tries again until
// `patience` ends, because the server, or the name of its host, may not exist yet. With `once`, every address is tried
// once, and a failure throws io. It blocks longer only in the resolver, as long as the resolver's configuration allows.
// Errors: those of Patience; resource.
core::UniqueFd connect_to(const net::Endpoint& endpoint, Patience& patience, bool once);

// Listens at listen_addresses(host); port 0: one that the kernel chooses. Throws io or resource.
net::Listener listen_on(const std::string& host, int port);

}  // namespace col::store::tcp

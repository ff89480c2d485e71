// The other end of a TCP connection, by hand: what a client or a server of the store would never say.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <col/store.hpp>

#include "core/unique_fd.hpp"
#include "support/prompt.hpp"

namespace col::test {

inline constexpr const char* kToken = "a token of this job";

// A server on this host, and a client of such a server.
inline StoreServerSpec server_spec() {
  return {.host = "127.0.0.1", .token = kToken};
}
inline std::shared_ptr<Store> client_of(int port, Duration timeout = kDeadline) {
  return make_tcp_store("127.0.0.1", port, kToken, timeout);
}

// A connection to a port of this host.
class RawClient {
 public:
  explicit RawClient(int port);

  // Whether all of it was taken.
  bool send(std::string_view bytes);
  // What comes until `enough` bytes are there, or the other side closes, or `limit` has passed.
  std::string receive(std::size_t enough, Duration limit = kDeadline);
  // Whether the other side closes the connection within `limit`; what it says before is thrown away.
  bool is_dropped(Duration limit = kDeadline);
  // Reads the greeting; the nonce in it.
  std::string read_nonce();
  // Proves that it knows the token; throws when that fails.
  void log_in(std::string_view token = kToken);
  int fd() const noexcept { return fd_.get(); }

 private:
  core::UniqueFd fd_;
};

// Listens on a port of this host; clients are accepted by the kernel, and by accept().
class RawServer {
 public:
  RawServer();
  int port() const noexcept { return port_; }
  // The next client, on which `greeting` is sent.
  core::UniqueFd accept(std::string_view greeting);
  // The next client, with which it has shaken hands as a store does; then it says `more`.
  core::UniqueFd accept_as_store(std::string_view more = {}, std::string_view token = kToken);

 private:
  core::UniqueFd fd_;
  int port_ = 0;
};

// The message of what `call` throws, with its code before it; "" when it throws nothing.
template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

inline bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}
// Checks that `text` has each part.
void check_has(const std::string& text, const std::vector<std::string>& parts);

// All that comes until the other side closes the connection.
std::string hear_out(int fd);

}  // namespace col::test

// One client's connection to the server of a TCP store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/unique_fd.hpp"
#include "net/endpoint.hpp"
#include "store/tcp/handshake.hpp"
#include "store/tcp/message_reader.hpp"
#include "store/tcp/protocol.hpp"
#include "store/tcp/socket.hpp"

namespace col::store::tcp {

// Used by one thread at a time. After a request whose answer nobody receives, the connection is still usable: it skips
// that answer later.
class Connection {
 public:
  // Connects, and the two sides prove to each other that they know `token`, which is not sent. `once` as for
  // connect_to(). Errors: those of connect_to(); mismatch (another program answers there, or it has another token or
  // job), resource (the server is full), timeout, io.
  Connection(const net::Endpoint& endpoint, std::string_view token, std::string_view job, Patience& patience,
             bool once);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Sends the request under a new number, and returns that.
  std::uint64_t send(const Request& request, Patience& patience);
  // The same, for several in one go: they are sent by flush().
  std::uint64_t post(Request request);
  void flush(Patience& patience);
  // The answer to request `id`; answers to other requests are skipped. Its bytes are valid until the next call. Throws
  // the error that the server answers with, and io if the server is gone.
  Answer receive(std::uint64_t id, Patience& patience);
  // The next answer to any request, which may be an error. Its bytes are valid until the next call.
  Answer receive_any(Patience& patience);
  // Ends a wait whose answer is no longer wanted. Does not block.
  void cancel(std::uint64_t id) noexcept;
  // Whether it can be used for another request.
  bool good() const noexcept { return good_; }

  std::size_t max_value_bytes() const noexcept { return max_value_bytes_; }
  // In a forked child: the parent goes on using it.
  void abandon() noexcept { fd_.reset(); }

 private:
  std::string read_greeting(Patience& patience);
  void shake_hands(const Handshake& handshake, Patience& patience);
  void send_text(std::string_view text, Patience& patience);
  bool receive_some(Patience& patience);
  [[noreturn]] void throw_lost(int error);
  [[noreturn]] void throw_stranger(std::string_view why);

  const std::string url_;
  core::UniqueFd fd_;
  MessageReader reader_;
  std::string posted_;
  std::uint64_t next_id_ = 1;
  std::size_t max_value_bytes_ = 0;
  bool good_ = true;  // no message is half sent or received out of step, and the server has not gone
};

}  // namespace col::store::tcp

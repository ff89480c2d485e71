// Messages between the launchers of a job's nodes: JSON texts, one per line, over a stream socket.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/unique_fd.hpp"

namespace col::launch {

// Never blocks. Memory is bounded, whatever the other side sends. A line that is too long or is not a JSON object
// breaks the connection.
class Wire {
 public:
  static constexpr std::size_t kMaxStranger = 64 * 1024;        // longest line until trust() is called
  static constexpr std::size_t kMaxLine = 64 * 1024 * 1024;     // longest line afterwards
  static constexpr std::size_t kMaxUnsent = 256 * 1024 * 1024;  // with more than that, the other side does not read

  // Makes `socket` non-blocking.
  explicit Wire(tools::UniqueFd socket);

  int fd() const noexcept { return socket_.get(); }
  void trust() noexcept { max_line_ = kMaxLine; }

  // Queues the message, and writes as much as possible at once.
  void send(const nlohmann::json& message);
  // Writes as much of the queue as possible.
  void flush();
  bool all_sent() const noexcept { return unsent_.empty(); }

  // The messages that have arrived. After broken() there are no more.
  std::vector<nlohmann::json> receive();
  bool broken() const noexcept { return !why_broken_.empty(); }
  const std::string& why_broken() const noexcept { return why_broken_; }

 private:
  void fail(std::string why);

  tools::UniqueFd socket_;
  std::size_t max_line_ = kMaxStranger;
  std::size_t heard_of_stranger_ = 0;  // bytes; a stranger may only say who it is
  std::string unsent_;
  std::string unread_;
  std::string why_broken_;
};

}  // namespace col::launch

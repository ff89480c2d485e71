// Messages between the launchers of a job's nodes: JSON texts, a line each, over a stream socket.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/unique_fd.hpp"

namespace col::launch {

// Never blocks. Whatever the other side sends, memory is bounded; a line that is too long, or no JSON object, breaks
// the connection.
class Wire {
 public:
  static constexpr std::size_t kMaxStranger = 64 * 1024;        // of a line, until trust() is called
  static constexpr std::size_t kMaxLine = 64 * 1024 * 1024;     // after
  static constexpr std::size_t kMaxUnsent = 256 * 1024 * 1024;  // more than that: the other side does not read

  // Makes `socket` non-blocking.
  explicit Wire(tools::UniqueFd socket);

  int fd() const noexcept { return socket_.get(); }
  void trust() noexcept { max_line_ = kMaxLine; }

  // Queues it, and writes what goes at once.
  void send(const nlohmann::json& message);
  // Writes what is queued, as far as it goes.
  void flush();
  bool all_sent() const noexcept { return unsent_.empty(); }

  // The messages that have come. Once broken() there are no more.
  std::vector<nlohmann::json> receive();
  bool broken() const noexcept { return !why_broken_.empty(); }
  const std::string& why_broken() const noexcept { return why_broken_; }

 private:
  void fail(std::string why);

  tools::UniqueFd socket_;
  std::size_t max_line_ = kMaxStranger;
  std::size_t heard_of_stranger_ = 0;  // bytes: all that it has to say is who it is
  std::string unsent_;
  std::string unread_;
  std::string why_broken_;
};

}  // namespace col::launch

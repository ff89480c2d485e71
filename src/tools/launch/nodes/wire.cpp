#include "launch/nodes/wire.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

namespace col::launch {

Wire::Wire(tools::UniqueFd socket) : socket_(std::move(socket)) {
  ::fcntl(socket_.get(), F_SETFL, O_NONBLOCK);
}

void Wire::fail(std::string why) {
  if (!broken()) why_broken_ = std::move(why);
  unsent_.clear();
  unread_.clear();
}

void Wire::send(const nlohmann::json& message) {
  if (broken()) return;
  unsent_ += message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  unsent_ += '\n';
  if (unsent_.size() > kMaxUnsent) return fail("it does not read what it is sent");
  flush();
}

void Wire::flush() {
  std::size_t sent = 0;
  while (sent < unsent_.size()) {
    const ssize_t written = ::send(socket_.get(), unsent_.data() + sent, unsent_.size() - sent, MSG_NOSIGNAL);
    if (written >= 0) {
      sent += static_cast<std::size_t>(written);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      return fail(strerror(errno));
    }
  }
  unsent_.erase(0, sent);
}

std::vector<nlohmann::json> Wire::receive() {
  std::vector<nlohmann::json> messages;
  std::array<char, 64 * 1024> buffer;
  bool at_end = false;
  while (!broken() && !at_end) {
    const ssize_t length = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (length < 0 && errno == EINTR) continue;
    if (length < 0 && errno == EAGAIN) break;
    at_end = length <= 0;
    const std::string why = length < 0 ? strerror(errno) : "the connection was closed";
    std::size_t searched = unread_.size();
    if (length > 0) {
      unread_.append(buffer.data(), static_cast<std::size_t>(length));
      if (max_line_ == kMaxStranger) heard_of_stranger_ += static_cast<std::size_t>(length);
      if (heard_of_stranger_ > kMaxStranger) fail("it sent a message that is too long");
    }
    for (std::size_t end; !broken() && (end = unread_.find('\n', searched)) != std::string::npos; searched = 0) {
      nlohmann::json message = nlohmann::json::parse(
          unread_.begin(), unread_.begin() + static_cast<std::ptrdiff_t>(end), nullptr, /*allow_exceptions=*/false);
      unread_.erase(0, end + 1);
      if (message.is_object()) {
        messages.push_back(std::move(message));
      } else {
        fail("it sent something else than col's launchers do");
      }
    }
    if (unread_.size() > max_line_) fail("it sent a message that is too long");
    if (at_end) fail(why);
  }
  return messages;
}

}  // namespace col::launch

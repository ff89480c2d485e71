#include "launch/nodes/wire.hpp"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include <col/error.hpp>

#include "json/json_text.hpp"
#include "json/packed_json.hpp"
#include "launch/processes/events.hpp"
#include "net/stream.hpp"

namespace col::launch {
namespace {

constexpr std::size_t kPendingBytes = 256 * 1024;  // with so many none are read

}  // namespace

Wire::Wire(tools::UniqueFd socket) : socket_(std::move(socket)) {
  ::fcntl(socket_.get(), F_SETFL, O_NONBLOCK);
}

void Wire::fail(std::string why) {
  if (!broken()) why_broken_ = std::move(why);
  unsent_ = {};
  unread_.clear();
  taken_ = 0;
}

void Wire::send(const nlohmann::json& message) {
  if (broken()) return;
  if (trusts_) {
    unsent_.add(frames::frame_of(core::packed(message)));
  } else {
    unsent_.add(core::json_text(message));
    unsent_.add("\n");
  }
  if (unsent_.size() > kMaxUnsent) return fail("it does not read what it is sent");
  flush();
}

void Wire::flush() {
  while (!unsent_.empty()) {
    const net::Moved moved = net::send(socket_.get(), unsent_);
    if (moved.has_ended) return fail(strerror(moved.error));
    if (moved.bytes == 0) return;
    unsent_.drop_front(moved.bytes);
  }
}

// The message at the front of what has come, if it is whole.
std::optional<nlohmann::json> Wire::take() {
  constexpr const char* kNone = "it sent something else than col's launchers do";
  constexpr const char* kLong = "it sent a message that is too long";
  const std::string_view rest = std::string_view(unread_).substr(taken_);
  std::size_t end = std::string_view::npos;
  std::string_view content;
  if (trusts_) {
    // The first byte tells another protocol, however little has come.
    if (!rest.empty() && static_cast<unsigned char>(rest.front()) > kMaxFrame >> 24) fail(kNone);
    if (broken() || rest.size() < frames::kHeadBytes) return std::nullopt;
    const std::size_t length = frames::length_in(rest);
    if (length > kMaxFrame) fail(kLong);
    content = rest.substr(frames::kHeadBytes, length);
    if (content.size() == length) end = frames::kHeadBytes + length;
  } else {
    end = rest.find('\n');
    content = rest.substr(0, end);
    if (heard_of_stranger_ + content.size() > kMaxStranger) fail(kLong);
  }
  if (broken() || end == std::string_view::npos) return std::nullopt;
  std::optional<nlohmann::json> message;
  try {
    message = trusts_ ? core::unpacked(content, kNone) : core::json_from(content);
    if (!message->is_object()) fail(kNone);
  } catch (const Error& error) {
    fail(std::string(error.message()));
  }
  if (broken()) return std::nullopt;
  taken_ += end + (trusts_ ? 0 : 1);
  if (!trusts_) heard_of_stranger_ += end + 1;
  return message;
}

std::optional<nlohmann::json> Wire::next() {
  std::array<char, 64 * 1024> buffer;
  while (!broken()) {
    if (auto message = take()) return message;
    if (broken()) break;
    unread_.erase(0, std::exchange(taken_, 0));
    const net::Moved moved = net::receive(socket_.get(), buffer);
    unread_.append(buffer.data(), moved.bytes);
    if (moved.bytes > 0) continue;
    if (moved.has_ended) fail(moved.error != 0 ? strerror(moved.error) : "the connection was closed");
    break;
  }
  return std::nullopt;
}

namespace frames {

void put_head(std::span<char> frame, std::size_t bytes) {
  for (std::size_t index = 0; index < kHeadBytes; ++index)
    frame[index] = static_cast<char>(bytes >> (8 * (kHeadBytes - 1 - index)));
}

std::size_t length_in(std::string_view frame) {
  std::size_t length = 0;
  for (std::size_t index = 0; index < kHeadBytes; ++index)
    length = length << 8 | static_cast<unsigned char>(frame[index]);
  return length;
}

std::string frame_of(std::string_view content) {
  std::string frame(kHeadBytes, '\0');
  put_head(frame, content.size());
  return frame.append(content);
}

}  // namespace frames

HeadLink::HeadLink(int fd, std::string begun, bool has_input)
    : fd_(fd), has_input_(has_input), pending_(std::move(begun)) {
  if (!has_input) return;
  PipeEnds pipe = make_input_pipe();
  ranks_end_ = std::move(pipe.read);
  pipe_ = std::move(pipe.write);
}

void HeadLink::prepare(pollfd& from_head, pollfd& to_ranks) const {
  // poll reports its end also while nothing is read.
  from_head = {fd_, static_cast<short>(pending_.size() < kPendingBytes ? POLLIN | POLLRDHUP : POLLRDHUP), 0};
  to_ranks = {fd_ < 0 ? -1 : pipe_.get(), static_cast<short>(can_pass_on() ? POLLOUT : 0), 0};
}

bool HeadLink::can_pass_on() const {
  return in_frame_ == 0 ? pending_.size() >= frames::kHeadBytes : !pending_.empty();
}

bool HeadLink::on_polled(const pollfd& from_head, const pollfd& to_ranks) {
  if (fd_ < 0) return true;
  if ((to_ranks.revents & (POLLERR | POLLNVAL)) != 0) pipe_.reset();
  const bool has_left = (from_head.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) != 0;
  const bool has_more = (from_head.revents & POLLIN) != 0;
  if (!has_left && (!has_more || receive()) && pass_on()) return true;
  fd_ = -1;
  pipe_.reset();
  return false;
}

// Returns false at the end.
bool HeadLink::receive() {
  std::array<char, 64 * 1024> piece;
  const ssize_t length = ::read(fd_, piece.data(), piece.size());
  if (length > 0) pending_.append(piece.data(), static_cast<std::size_t>(length));
  return length > 0 || (length < 0 && (errno == EINTR || errno == EAGAIN));
}

// Returns false when what came cannot be from a colrun.
bool HeadLink::pass_on() {
  std::string_view rest = pending_;
  while (has_input_) {
    if (in_frame_ == 0) {
      if (rest.size() < frames::kHeadBytes) break;
      in_frame_ = frames::length_in(rest);
      if (in_frame_ > kMaxInputBytes) return false;
      rest.remove_prefix(frames::kHeadBytes);
      has_input_ = in_frame_ != 0;
      continue;
    }
    if (rest.empty()) break;
    const std::size_t bytes = std::min(in_frame_, rest.size());
    const ssize_t written = pipe_ ? ::write(pipe_.get(), rest.data(), bytes) : static_cast<ssize_t>(bytes);
    if (written < 0 && errno == EAGAIN) break;
    if (written < 0 && errno != EINTR) pipe_.reset();
    if (written < 0) continue;
    in_frame_ -= static_cast<std::size_t>(written);
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  if (!has_input_) {
    pipe_.reset();
    rest = {};
  }
  pending_.erase(0, pending_.size() - rest.size());
  return true;
}

}  // namespace col::launch

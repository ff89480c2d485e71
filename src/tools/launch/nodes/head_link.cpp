#include "launch/nodes/head_link.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "launch/nodes/input_frames.hpp"
#include "launch/processes/descriptors.hpp"

namespace col::launch {
namespace {

constexpr std::size_t kPendingBytes = 256 * 1024;  // with so many none are read

}  // namespace

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
  return in_frame_ == 0 ? pending_.size() >= input_frames::kHeadBytes : !pending_.empty();
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
      if (rest.size() < input_frames::kHeadBytes) break;
      in_frame_ = input_frames::length_in(rest);
      if (in_frame_ > input_frames::kMaxBytes) return false;
      rest.remove_prefix(input_frames::kHeadBytes);
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

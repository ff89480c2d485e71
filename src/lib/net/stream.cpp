#include "net/stream.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "core/clock/clock.hpp"

namespace col::net {
namespace {

constexpr std::size_t kPiecesAtOnce = 64;

bool is_nothing_now(int error) noexcept {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

// Of a call that does not block: where a signal came, no event would tell of what is left.
template <class Call>
ssize_t uninterrupted(Call call) noexcept {
  ssize_t bytes = -1;
  do {
    bytes = call();
  } while (bytes < 0 && errno == EINTR);
  return bytes;
}

Moved received(ssize_t bytes) noexcept {
  if (bytes > 0) return {.bytes = static_cast<std::size_t>(bytes)};
  const int error = bytes < 0 ? errno : 0;
  return {.has_ended = !is_nothing_now(error), .error = error};
}

Moved sent(ssize_t bytes) noexcept {
  if (bytes >= 0) return {.bytes = static_cast<std::size_t>(bytes)};
  const int error = errno;
  return {.has_ended = !is_nothing_now(error), .error = error};
}

}  // namespace

Moved receive(int fd, std::span<char> room, bool may_block) noexcept {
  if (may_block) return received(::recv(fd, room.data(), room.size(), 0));
  return received(uninterrupted([&] { return ::recv(fd, room.data(), room.size(), MSG_DONTWAIT); }));
}

Moved receive(int fd, std::span<const iovec> parts) noexcept {
  return received(uninterrupted([&] { return ::readv(fd, parts.data(), static_cast<int>(parts.size())); }));
}

Moved send(int fd, std::string_view bytes) noexcept {
  return sent(uninterrupted([&] { return ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT); }));
}

Moved send(int fd, std::span<const iovec> parts) noexcept {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts.data());
  message.msg_iovlen = parts.size();
  return sent(uninterrupted([&] { return ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT); }));
}

Moved send(int fd, const Output& output) noexcept {
  std::array<std::string_view, kPiecesAtOnce> pieces;
  const std::size_t count = output.pieces(pieces);
  if (count == 1) return send(fd, pieces[0]);
  std::array<iovec, kPiecesAtOnce> parts;
  for (std::size_t i = 0; i < count; ++i) parts[i] = {const_cast<char*>(pieces[i].data()), pieces[i].size()};
  return send(fd, std::span(parts).first(count));
}

bool wait_for(int fd, short events, Duration at_most) noexcept {
  pollfd entry{fd, events, 0};
  return core::poll_for({&entry, 1}, at_most) > 0;
}

}  // namespace col::net

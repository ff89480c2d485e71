#include "net/stream.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>

#include "core/clock/clock.hpp"

namespace col::net {
namespace {

constexpr std::size_t kPiecesAtOnce = 64;

bool is_nothing_now(int error) noexcept {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

// Of a call that did not block: where a signal came, no event would tell of what is left.
template <class Call>
Moved sent_by(Call call) noexcept {
  ssize_t sent = -1;
  do {
    sent = call();
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return {.bytes = static_cast<std::size_t>(sent)};
  const int error = errno;
  return {.has_ended = !is_nothing_now(error), .error = error};
}

}  // namespace

Moved receive(int fd, std::span<char> room, bool may_block) noexcept {
  ssize_t got = -1;
  do {
    got = ::recv(fd, room.data(), room.size(), may_block ? 0 : MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR && !may_block);
  if (got > 0) return {.bytes = static_cast<std::size_t>(got)};
  const int error = got < 0 ? errno : 0;
  return {.has_ended = !is_nothing_now(error), .error = error};
}

Moved send(int fd, std::string_view bytes) noexcept {
  return sent_by([&] { return ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT); });
}

Moved send(int fd, const Output& output) noexcept {
  std::array<std::string_view, kPiecesAtOnce> pieces;
  const std::size_t count = output.pieces(pieces);
  if (count == 1) return send(fd, pieces[0]);
  std::array<iovec, kPiecesAtOnce> parts;
  for (std::size_t i = 0; i < count; ++i) parts[i] = {const_cast<char*>(pieces[i].data()), pieces[i].size()};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  return sent_by([&] { return ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT); });
}

bool wait_for(int fd, short events, Duration at_most) noexcept {
  pollfd entry{fd, events, 0};
  return core::poll_for({&entry, 1}, at_most) > 0;
}

}  // namespace col::net

#include "colbench/workload/store_wire.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>

#include <fmt/format.h>

namespace col::colbench {
namespace {

constexpr std::uint64_t kMagic = 0x6d4f534c4f43'0001;
constexpr auto kLastKind = static_cast<std::uint32_t>(Frame::Kind::failed);
// Of a text that says why not.
constexpr std::uint64_t kMostText = 4096;

struct Header {
  std::uint64_t magic = 0;
  std::uint32_t kind = 0, argument = 0;
  std::uint64_t object = 0, length = 0;
};
static_assert(sizeof(Header) == kFrameBytes);

std::string system_text(int code) {
  return std::generic_category().message(code);
}

// Names of Linux's abstract kind: they begin with a zero byte, and have no file.
struct Address {
  sockaddr_un bytes = {.sun_family = AF_UNIX, .sun_path = {}};
  socklen_t length = sizeof(sa_family_t);
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
};
constexpr std::size_t kBeforeName = sizeof(sa_family_t) + 1;

Address address_of(const std::string& name) {
  Address address;
  const std::size_t length = std::min(name.size(), sizeof address.bytes.sun_path - 1);
  std::memcpy(address.bytes.sun_path + 1, name.data(), length);
  address.length = static_cast<socklen_t>(kBeforeName + length);
  return address;
}

bool is_of_same_user(int fd) {
  ucred other{};
  socklen_t length = sizeof other;
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &length) == 0 && other.uid == ::geteuid();
}

tools::UniqueFd make_socket() {
  tools::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) throw Error(ErrorCode::resource, fmt::format("cannot make a socket: {}", system_text(errno)));
  return fd;
}

}  // namespace

FrameBytes encode(const Frame& frame) {
  return std::bit_cast<FrameBytes>(
      Header{kMagic, static_cast<std::uint32_t>(frame.kind), frame.argument, frame.object, frame.length});
}

std::optional<Frame> decode(std::span<const std::byte, kFrameBytes> bytes) {
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kMagic || header.kind > kLastKind) return std::nullopt;
  const Frame frame{static_cast<Frame::Kind>(header.kind), header.argument, header.object, header.length};
  if (frame.kind == Frame::Kind::failed && frame.length > kMostText) return std::nullopt;
  return frame;
}

Frame failed_frame(ErrorCode code, int rank, std::string_view text) {
  return {.kind = Frame::Kind::failed,
          .argument = static_cast<std::uint32_t>(code),
          .object = static_cast<std::uint64_t>(static_cast<std::int64_t>(rank)),
          .length = std::min<std::uint64_t>(text.size(), kMostText)};
}

Error error_of(const Frame& failed, std::string text) {
  const auto last = static_cast<std::uint32_t>(ErrorCode::internal);
  const auto code = static_cast<ErrorCode>(std::min(failed.argument, last));
  return Error(code, text, {}, static_cast<int>(static_cast<std::int64_t>(failed.object)));
}

Wire::Wire(tools::UniqueFd fd, std::string who, int rank) : fd_(std::move(fd)), who_(std::move(who)), rank_(rank) {}

Wire Wire::connect(const std::string& name, std::string who, int rank) {
  const Address address = address_of(name);
  tools::UniqueFd fd = make_socket();
  while (::connect(fd.get(), address.get(), address.length) != 0) {
    if (errno == EINTR) continue;
    const char* hint = errno == ECONNREFUSED ? "; it serves ranks of one network namespace only" : "";
    throw Error(ErrorCode::io, fmt::format("cannot connect to {}: {}{}", who, system_text(errno), hint), {}, rank);
  }
  if (!is_of_same_user(fd.get()))
    throw Error(ErrorCode::io, fmt::format("{} is a process of another user", who), {}, rank);
  return {std::move(fd), std::move(who), rank};
}

void Wire::send(const Frame& frame, std::span<const std::byte> payload, const Deadline& deadline) {
  FrameBytes header = encode(frame);
  std::span<std::byte> head(header);
  while (!head.empty() || !payload.empty()) {
    std::array<iovec, 2> parts = {
        {{head.data(), head.size()}, {const_cast<std::byte*>(payload.data()), payload.size()}}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t sent = ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL);
    if (sent >= 0) {
      const auto of_head = std::min(static_cast<std::size_t>(sent), head.size());
      head = head.subspan(of_head);
      payload = payload.subspan(static_cast<std::size_t>(sent) - of_head);
    } else if (errno == EAGAIN) {
      wait(POLLOUT, deadline);
    } else if (errno == EPIPE || errno == ECONNRESET) {
      refused_or_lost();
    } else if (errno != EINTR) {
      throw Error(ErrorCode::io, fmt::format("cannot send to {}: {}", who_, system_text(errno)), {}, rank_);
    }
  }
}

void Wire::receive(std::span<std::byte> payload, const Deadline& deadline) {
  while (!payload.empty()) {
    const ssize_t got = ::recv(fd_.get(), payload.data(), payload.size(), 0);
    if (got > 0) {
      payload = payload.subspan(static_cast<std::size_t>(got));
    } else if (got == 0 || errno == ECONNRESET) {
      lost();
    } else if (errno == EAGAIN) {
      wait(POLLIN, deadline);
    } else if (errno != EINTR) {
      throw Error(ErrorCode::io, fmt::format("cannot receive from {}: {}", who_, system_text(errno)), {}, rank_);
    }
  }
}

Frame Wire::receive(const Deadline& deadline) {
  FrameBytes header;
  receive(std::span<std::byte>(header), deadline);
  const std::optional<Frame> frame = decode(header);
  if (!frame) throw Error(ErrorCode::internal, fmt::format("what {} has sent is no frame", who_), {}, rank_);
  return *frame;
}

Frame Wire::expect(Frame::Kind kind, const Deadline& deadline) {
  const Frame frame = receive(deadline);
  if (frame.kind == kind) return frame;
  if (frame.kind == Frame::Kind::failed) throw_reason(frame, deadline);
  throw Error(ErrorCode::internal,
              fmt::format("{} has answered with a frame of kind {}, not {}", who_,
                          static_cast<std::uint32_t>(frame.kind), static_cast<std::uint32_t>(kind)),
              {}, rank_);
}

void Wire::throw_reason(const Frame& failed, const Deadline& deadline) {
  std::string text(failed.length, '\0');
  receive(std::as_writable_bytes(std::span(text)), deadline);
  throw error_of(failed, std::move(text));
}

// A peer that closes a connection in the middle of a message may have said why.
void Wire::refused_or_lost() {
  const Deadline now = Deadline::after(std::chrono::milliseconds(100));
  FrameBytes header;
  receive(std::span<std::byte>(header), now);
  const std::optional<Frame> frame = decode(header);
  if (frame && frame->kind == Frame::Kind::failed) throw_reason(*frame, now);
  lost();
}

void Wire::wait(short events, const Deadline& deadline) const {
  pollfd entry{.fd = fd_.get(), .events = events, .revents = 0};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining());
  const int ready = ::poll(&entry, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 1000)));
  if (ready > 0 || !deadline.expired()) return;
  throw Error(ErrorCode::timeout,
              fmt::format("waited {:.1f} s for {}; is it stopped?",
                          std::chrono::duration<double>(deadline.budget()).count(), who_),
              {}, rank_);
}

void Wire::lost() const {
  throw Error(ErrorCode::peer_lost, fmt::format("{} has closed its connection", who_), {}, rank_);
}

Listener::Listener(int backlog) : fd_(make_socket()) {
  Address address;  // no name: the kernel gives one
  socklen_t length = sizeof address.bytes;
  if (::bind(fd(), address.get(), address.length) != 0 || ::listen(fd(), backlog) != 0 ||
      ::getsockname(fd(), reinterpret_cast<sockaddr*>(&address.bytes), &length) != 0)
    throw Error(ErrorCode::io, fmt::format("cannot listen on a socket: {}", system_text(errno)));
  name_.assign(address.bytes.sun_path + 1, length - kBeforeName);
}

tools::UniqueFd Listener::accept() const {
  tools::UniqueFd connection(::accept4(fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (connection && !is_of_same_user(connection.get())) {
    connection.reset();
    errno = EAGAIN;
  }
  return connection;
}

}  // namespace col::colbench

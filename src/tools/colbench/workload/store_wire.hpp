// What goes over the sockets of the object-store emulation: frames, and an end that sends and receives them.
//
// A frame is a header of kFrameBytes, which has the length of the payload, and then the payload. Both ends are on one
// host, so numbers have the host's format.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <col/error.hpp>
#include <col/job.hpp>

#include "common/unique_fd.hpp"

namespace col::colbench {

struct Frame {
  enum class Kind : std::uint32_t {
    hello,   // a worker to worker 0: `argument` is its rank
    put,     // a client to the store: keep these bytes as `object`; `argument` clients will get it, then it is removed
    get,     // a client to the store: a request for the bytes of `object`
    call,    // a worker to worker 0: my tensor is `object`
    done,    // the store: it is kept
    data,    // the store: the bytes of `object`
    answer,  // worker 0: the sum is `object`
    failed,  // either one: why not, in words; `argument` is an ErrorCode, `object` the rank that it is about
  };
  Kind kind = Kind::failed;
  std::uint32_t argument = 0;
  std::uint64_t object = 0;
  std::uint64_t length = 0;  // bytes that follow
};
inline constexpr std::size_t kFrameBytes = 32;
using FrameBytes = std::array<std::byte, kFrameBytes>;

FrameBytes encode(const Frame& frame);
// Nothing if these bytes are not a header: another magic number, or an unknown kind.
std::optional<Frame> decode(std::span<const std::byte, kFrameBytes> bytes);
// A frame with `text`, and the error that it becomes at the other end.
Frame failed_frame(ErrorCode code, int rank, std::string_view text);
Error error_of(const Frame& failed, std::string text);

// One end of a connection. Its waits have a deadline. Not thread safe.
//
// Functions that wait throw timeout, peer_lost (the other end is gone), io. Functions that receive also throw internal
// (not a frame).
class Wire {
 public:
  Wire() = default;
  // Takes a connected socket. `who` is the other end ("rank 3"), and `rank` the rank that an error is about.
  Wire(tools::UniqueFd fd, std::string who, int rank);
  // Connects to the Listener of that name. Does not wait: its queue must have room.
  static Wire connect(const std::string& name, std::string who, int rank);

  // This end, once it is known who is at the other end.
  Wire renamed(std::string who, int rank) && { return {std::move(fd_), std::move(who), rank}; }

  int fd() const noexcept { return fd_.get(); }
  void close() noexcept { fd_.reset(); }

  void send(const Frame& frame, std::span<const std::byte> payload, const Deadline& deadline);
  Frame receive(const Deadline& deadline);
  // Receives the payload after the header. Requires: as many bytes as the header said.
  void receive(std::span<std::byte> payload, const Deadline& deadline);
  // Receives a frame of this kind. Another kind is internal; a failed frame throws what it says.
  Frame expect(Frame::Kind kind, const Deadline& deadline);

 private:
  void wait(short events, const Deadline& deadline) const;
  [[noreturn]] void throw_reason(const Frame& failed, const Deadline& deadline);
  [[noreturn]] void refused_or_lost();
  [[noreturn]] void lost() const;

  tools::UniqueFd fd_;
  std::string who_;
  int rank_ = -1;
};

// A listening socket, non-blocking, that is not a file. The kernel gives its name, and the name is gone with it,
// however its process ends. Every process in the same network namespace may connect; accept() accepts only processes of
// the same user.
class Listener {
 public:
  Listener() = default;  // none
  // Throws col::Error io, resource.
  explicit Listener(int backlog);

  const std::string& name() const noexcept { return name_; }
  int fd() const noexcept { return fd_.get(); }
  // The next connection, without blocking. Nothing if none waits, with errno as accept() has left it; or EAGAIN if the
  // connection was refused.
  tools::UniqueFd accept() const;

 private:
  tools::UniqueFd fd_;
  std::string name_;
};

}  // namespace col::colbench

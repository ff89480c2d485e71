// What launchers of a job's nodes send one another: messages over sockets, and input over ssh.
#pragma once

#include <poll.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "common/unique_fd.hpp"
#include "net/output.hpp"

namespace col::launch {

// Data in a stream: a length in four bytes, the most significant first, and as many bytes.
namespace frames {

inline constexpr std::size_t kHeadBytes = 4;

// Writes the head of a frame of `bytes` bytes to the front of `frame`.
void put_head(std::span<char> frame, std::size_t bytes);
// The length at the front of `frame`, which has at least a head.
std::size_t length_in(std::string_view frame);
// `content` behind its head.
std::string frame_of(std::string_view content);

}  // namespace frames

// Messages between the launchers of a job's nodes, over a stream socket: objects of JSON.
//
// Strangers talk in lines of text, which launchers of every version read, so that another version can be named. Once a
// side trusts the other one it sends and takes frames of packed JSON (json/packed_json.hpp).
//
// Never blocks. Memory is bounded, whatever the other side sends. A message that is too long or is not a JSON object
// breaks the connection.
class Wire {
 public:
  static constexpr std::size_t kMaxStranger = 64 * 1024;        // longest line, and all that a stranger may say
  static constexpr std::size_t kMaxFrame = 64 * 1024 * 1024;    // longest frame
  static constexpr std::size_t kMaxUnsent = 256 * 1024 * 1024;  // with more than that, the other side does not read

  // Makes `socket` non-blocking.
  explicit Wire(tools::UniqueFd socket);

  int fd() const noexcept { return socket_.get(); }
  void trust() noexcept { trusts_ = true; }
  bool trusts() const noexcept { return trusts_; }

  // Queues the message, and writes as much as possible at once.
  void send(const nlohmann::json& message);
  // Writes as much of the queue as possible.
  void flush();
  bool all_sent() const noexcept { return unsent_.empty(); }

  // The next message that has arrived, if there is one. After broken() there are no more. A caller that has found in
  // one that the other side can be trusted says so before it asks for the next.
  std::optional<nlohmann::json> next();
  bool broken() const noexcept { return !why_broken_.empty(); }
  const std::string& why_broken() const noexcept { return why_broken_; }

 private:
  void fail(std::string why);
  std::optional<nlohmann::json> take();

  tools::UniqueFd socket_;
  bool trusts_ = false;
  std::size_t heard_of_stranger_ = 0;  // bytes; a stranger may only say who it is
  net::Output unsent_;
  std::string unread_;
  std::size_t taken_ = 0;  // bytes at the front of unread_
  std::string why_broken_;
};

// The data that comes on stdin, after the job, from the launcher that has started this one by ssh (remotes.hpp): its
// ranks' input, if some of it is for ranks of this host. The end of stdin says that the other launcher is gone.
//
// That input consists of frames. One of length 0 is the end of the input. The end of the stream has another meaning:
// its sender is gone.
inline constexpr std::size_t kMaxInputBytes = 64 * 1024;  // the most in one frame, without its head

// Takes frames, and writes their content into a pipe that the ranks read. It never blocks, and its
// memory is bounded. Once nobody reads the pipe any more, the rest is dropped. SIGPIPE must be ignored.
class HeadLink {
 public:
  // `begun` was already read from `fd`, which belongs to the caller. Throws LaunchError (125) if no pipe can be made.
  HeadLink(int fd, std::string begun, bool has_input);

  // The end from which the ranks read; -1: they have no input. A user that is done with it puts /dev/null in its place.
  int ranks_end() const noexcept { return ranks_end_.get(); }
  // For a child process: the data is only for the parent.
  void leave_to_parent() { pipe_.reset(); }

  // prepare() sets what to poll for, `from_head` and `to_ranks`. The next function handles the results; it returns
  // false, once, when the other launcher is gone. Its input is then no longer passed on.
  void prepare(pollfd& from_head, pollfd& to_ranks) const;
  bool on_polled(const pollfd& from_head, const pollfd& to_ranks);

 private:
  bool can_pass_on() const;
  bool receive();
  bool pass_on();

  int fd_;  // -1: it has ended
  tools::UniqueFd ranks_end_;
  tools::UniqueFd pipe_;      // empty: nobody reads
  bool has_input_;            // and its end has not come
  std::string pending_;       // received, but not passed on
  std::size_t in_frame_ = 0;  // how many bytes of the present frame are still to be passed on
};

}  // namespace col::launch

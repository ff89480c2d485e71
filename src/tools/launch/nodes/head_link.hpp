// What the launcher that has started this one by ssh (remotes.hpp) sends on its stdin after the job: its ranks' input,
// if any is for ranks of this host. The end of that stdin says that the other launcher is gone.
#pragma once

#include <poll.h>

#include <cstddef>
#include <string>

#include "common/unique_fd.hpp"

namespace col::launch {

// Takes frames (input_frames.hpp) and writes what is in them into a pipe that the ranks read, never blocking; memory is
// bounded. Once nobody reads the pipe any more, the rest is thrown away. SIGPIPE must be ignored.
class HeadLink {
 public:
  // `begun` was read from `fd` already; `fd` is the caller's. Throws LaunchError (125) when there can be no pipe.
  HeadLink(int fd, std::string begun, bool has_input);

  // What the ranks read from; -1: they have no input. Whoever is done with it puts /dev/null in its place.
  int ranks_end() const noexcept { return ranks_end_.get(); }
  // In a child process: what is sent is for the parent alone.
  void leave_to_parent() { pipe_.reset(); }

  // Sets what to poll for, `from_head` and `to_ranks`, and takes note of what came. The latter returns false, once,
  // when the other launcher is gone; its input is no longer passed on then.
  void prepare(pollfd& from_head, pollfd& to_ranks) const;
  bool on_polled(const pollfd& from_head, const pollfd& to_ranks);

 private:
  bool can_pass_on() const;
  bool receive();
  bool pass_on();

  int fd_;  // -1: is at its end
  tools::UniqueFd ranks_end_;
  tools::UniqueFd pipe_;      // empty: nobody reads
  bool has_input_;            // and its end has not come
  std::string pending_;       // received, not passed on
  std::size_t in_frame_ = 0;  // how many bytes of the frame that has begun are still to pass on
};

}  // namespace col::launch

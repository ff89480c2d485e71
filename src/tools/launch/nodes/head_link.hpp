// The data that comes on stdin, after the job, from the launcher that has started this one by ssh (remotes.hpp): its
// ranks' input, if some of it is for ranks of this host. The end of stdin says that the other launcher is gone.
#pragma once

#include <poll.h>

#include <cstddef>
#include <string>

#include "common/unique_fd.hpp"

namespace col::launch {

// Takes frames (input_frames.hpp), and writes their content into a pipe that the ranks read. It never blocks, and its
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

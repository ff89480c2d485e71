// Passes what the ranks print on to the user, whole lines, without ever blocking or losing any.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/unique_fd.hpp"
#include "launch/line_mux.hpp"
#include "launch/sink.hpp"

namespace col::launch {

// Registers its descriptors with the caller's epoll; event data is `tag | index`. Back-pressure instead of buffers:
// when the user's side is full, the ranks' pipes are not read, and the ranks wait as they would on the user's own pipe.
class Output {
 public:
  using Time = LineMux::Time;

  Output(int epoll_fd, std::uint64_t pipe_tag, std::uint64_t sink_tag, int stdout_fd, int stderr_fd);

  // Reads from `read_end` (already non-blocking) until its end. Throws LaunchError when it cannot be watched.
  enum class Stream { out, err };
  void add(Stream stream, std::string label, tools::UniqueFd read_end);

  // A line of the launcher's own, without its newline.
  void say(std::string_view line);

  // Events of epoll: a pipe has something, a sink has room.
  void on_pipe(std::size_t index);
  void on_sink(std::size_t index);

  // Moves bytes: one read per pipe that has some, then writes. Returns true when there is more to do at once.
  bool work(Time now);
  std::optional<Time> deadline() const;

  bool all_ended() const noexcept { return open_pipes_ == 0; }  // every pipe was read to its end
  bool all_written() const;
  // Stops waiting for pipes that somebody still holds open. What is in them was read before.
  void give_up_pipes(Time now);
  void drop_unwritten();

  // errno of the first write that failed for good (EPIPE: the reader is gone); 0 when none. The pipes of that side are
  // closed then, so that the ranks see it too.
  int error() const noexcept { return error_; }

 private:
  struct Side {
    explicit Side(int fd) : sink(fd) {}
    Sink sink;
    LineMux lines;
    int own_source = -1;
    bool blocked = false;  // registered for writability
    bool broken = false;
  };
  struct Pipe {
    tools::UniqueFd fd;
    std::size_t side = 0;
    int source = 0;
    bool ready = false;
  };

  void read(Pipe& pipe, Time now);
  void end(Pipe& pipe, Time now);
  void write(std::size_t index);
  void fail(std::size_t index, int error);
  std::size_t side_of(Stream stream) const { return stream == Stream::out ? 0 : sides_.size() - 1; }

  int epoll_fd_;
  std::uint64_t pipe_tag_, sink_tag_;
  std::vector<std::unique_ptr<Side>> sides_;  // one for both streams when they lead to the same place
  std::vector<Pipe> pipes_;
  std::vector<std::size_t> ready_;
  std::size_t open_pipes_ = 0;
  std::string buffer_;
  int error_ = 0;
};

}  // namespace col::launch

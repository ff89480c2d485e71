// What the tests of the ranks' output and input share: pipes, and an event loop that runs until nothing more happens.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "common/unique_fd.hpp"
#include "launch/output/input.hpp"
#include "launch/output/output.hpp"
#include "launch/processes/events.hpp"
#include "support/catch.hpp"

namespace col::test {

using launch::Events;
using launch::Input;
using launch::Output;
using tools::UniqueFd;

struct Pipe {
  UniqueFd read, write;
};

inline Pipe make_pipe() {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

inline void set_non_blocking(const UniqueFd& fd) {
  REQUIRE(::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK) == 0);
}

// What can be read within ten seconds, the first piece of it; empty at the end.
inline std::string read_some(int fd) {
  pollfd some{fd, POLLIN, 0};
  REQUIRE(::poll(&some, 1, 10'000) == 1);
  std::string text(1 << 20, '\0');
  const ssize_t length = ::read(fd, text.data(), text.size());
  return length < 0 ? "" : text.substr(0, static_cast<std::size_t>(length));
}

inline bool has_something(int fd) {
  pollfd some{fd, POLLIN, 0};
  return ::poll(&some, 1, 0) == 1;
}

inline void write_all(int fd, const std::string& text) {
  REQUIRE(::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

// Writes as much of the text as finds room; returns how much that was.
inline std::size_t write_some(int fd, std::string_view text) {
  const ssize_t written = ::write(fd, text.data(), text.size());
  return written < 0 ? 0 : static_cast<std::size_t>(written);
}

// Handles what has happened until nothing more does. Either part may be missing.
inline void run(Events& events, Output* output, Input* input = nullptr) {
  for (bool more = true; more || has_something(events.fd());) {
    events.serve({});
    const bool more_input = input != nullptr && input->work();
    const bool more_output = output != nullptr && output->work(launch::LineMux::Clock::now());
    more = more_input || more_output;
  }
}

// The same until something is so; for what the kernel does in its own time.
inline void run_until(Events& events, Output* output, Input* input, const std::function<bool()>& is_so) {
  const auto latest = launch::LineMux::Clock::now() + std::chrono::seconds(10);
  while (!is_so()) {
    REQUIRE(launch::LineMux::Clock::now() < latest);
    pollfd some{events.fd(), POLLIN, 0};
    ::poll(&some, 1, 10);
    run(events, output, input);
  }
}

// One attempt of a job whose console is made of pipes: of two, or of one for both streams.
struct OutputJob {
  enum class Console { two_pipes, one_pipe };
  OutputJob(const launch::OutputSpec& output_spec, int ranks, Console console_is)
      : spec(output_spec), ranks_count(ranks), kind(console_is) {
    ::signal(SIGPIPE, SIG_IGN);
  }
  launch::ChildStreams add(int rank, int restart = 0) {
    return output.add_rank({.rank = rank, .local_rank = rank, .world_size = ranks_count, .restart = restart}, false);
  }
  void run() { col::test::run(events, &output); }

  launch::OutputSpec spec;
  int ranks_count;
  Console kind;
  Events events;
  Pipe console = make_pipe();
  Pipe errors = make_pipe();
  Output output{events,
                {.stdout_fd = console.write.get(),
                 .stderr_fd = (kind == Console::one_pipe ? console : errors).write.get(),
                 .ranks = ranks_count},
                spec};
};

}  // namespace col::test

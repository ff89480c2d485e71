// What ranks read, and pseudo-terminals.
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>

#include <csignal>
#include <fstream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "launch/output/input.hpp"
#include "launch/output/terminal.hpp"
#include "support/temp_dir.hpp"
#include "unit/launch/output_support.hpp"

using namespace col::launch;
using namespace col::test;

namespace {

std::string random_bytes(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// Ranks that read from an Input, which is closed here as in the launcher.
struct Job {
  Job(UniqueFd from, int ranks) : input(events, from.get()) {
    ::signal(SIGPIPE, SIG_IGN);
    for (int rank = 0; rank < ranks; ++rank) {
      readers.push_back(input.add_pipe());
      set_non_blocking(readers.back());
    }
    got.resize(readers.size());
    at_end.resize(readers.size());
  }
  void run() { col::test::run(events, nullptr, &input); }
  // Takes what has arrived at one rank.
  void take(std::size_t rank) {
    std::string piece(256 * 1024, '\0');
    ssize_t length = 0;
    while ((length = ::read(readers[rank].get(), piece.data(), piece.size())) > 0) {
      got[rank].append(piece, 0, static_cast<std::size_t>(length));
    }
    at_end[rank] = length == 0;
  }
  void take_all_until_end() {
    run_until(events, nullptr, &input, [&] {
      bool all = true;
      for (std::size_t rank = 0; rank < readers.size(); ++rank) {
        if (readers[rank]) take(rank);
        all = all && (at_end[rank] || !readers[rank]);
      }
      return all;
    });
  }

  Events events;
  Input input;
  std::vector<UniqueFd> readers;
  std::vector<std::string> got;
  std::vector<bool> at_end;
};

}  // namespace

TEST_CASE("input: every rank gets every byte, from a file, a pipe, or a socket, and then the end", "[launch]") {
  const std::string bytes = random_bytes(1'000'000, 1);
  const std::string kind = GENERATE("file", "pipe", "socket");
  CAPTURE(kind);
  const TempDir folder;
  Pipe ends;
  if (kind == "file") {
    const std::string path = folder / "input";
    std::ofstream(path, std::ios::binary) << bytes;
    ends.read.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  } else if (kind == "pipe") {
    ends = make_pipe();
  } else {
    int fds[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    ends = {UniqueFd(fds[0]), UniqueFd(fds[1])};
  }
  Job job(std::move(ends.read), 3);
  job.input.start();
  if (ends.write) {
    set_non_blocking(ends.write);
    std::size_t sent = 0;
    run_until(job.events, nullptr, &job.input, [&] {
      sent += write_some(ends.write.get(), std::string_view(bytes).substr(sent, 30'000));
      for (std::size_t rank = 0; rank < 3; ++rank) job.take(rank);
      return sent == bytes.size();
    });
    ends.write.reset();
  }
  job.take_all_until_end();
  for (const std::string& got : job.got) CHECK(got == bytes);
}

TEST_CASE("input: nothing is read before all ranks are there, nor while the job is stopped", "[launch]") {
  Pipe ends = make_pipe();
  Job job(std::move(ends.read), 1);
  write_all(ends.write.get(), "early");
  job.run();
  CHECK_FALSE(has_something(job.readers[0].get()));
  job.input.start();
  job.run();
  job.take(0);
  CHECK(job.got[0] == "early");
  job.input.suspend();
  write_all(ends.write.get(), " late");
  job.run();
  CHECK_FALSE(has_something(job.readers[0].get()));
  job.input.resume();
  job.run();
  job.take(0);
  CHECK(job.got[0] == "early late");
}

TEST_CASE("input: the slowest rank sets the pace, until it ends", "[launch]") {
  Pipe ends = make_pipe();
  set_non_blocking(ends.write);
  Job job(std::move(ends.read), 2);
  job.input.start();
  const std::string piece(10'000, 'x');
  std::size_t sent = 0;
  for (int idle = 0; idle < 3; ++idle) {
    while (const std::size_t written = write_some(ends.write.get(), piece)) {
      sent += written;
      idle = 0;
    }
    job.run();
    job.take(0);
  }
  // Rank 1 has read nothing: its pipe, one block and our own pipe are full.
  CHECK(sent <= 4 * 64 * 1024);
  CHECK(job.got[0].size() < sent);
  SECTION("it goes on") {
    ends.write.reset();
    job.take_all_until_end();
    CHECK(job.got[1].size() == sent);
  }
  SECTION("it closes its input") {
    job.readers[1].reset();
    ends.write.reset();
    job.take_all_until_end();
  }
  SECTION("it has ended, but left its input to somebody who does not read") {
    job.input.on_reader_end(1);
    ends.write.reset();
    run_until(job.events, nullptr, &job.input, [&] {
      job.take(0);
      return static_cast<bool>(job.at_end[0]);
    });
  }
  CHECK(job.got[0].size() == sent);
}

TEST_CASE("input: when no rank reads any more, our own writer notices", "[launch]") {
  Pipe ends = make_pipe();
  Job job(std::move(ends.read), 2);
  job.input.start();
  job.run();
  job.readers[0].reset();
  job.run();
  CHECK(::write(ends.write.get(), "x", 1) == 1);
  job.readers[1].reset();
  job.run();
  CHECK(::write(ends.write.get(), "x", 1) == -1);
}

TEST_CASE("input: without an input the ranks are at its end at once", "[launch]") {
  Job job(UniqueFd(), 2);
  job.input.start();
  job.take_all_until_end();
  CHECK(job.got == std::vector<std::string>(2));
}

namespace {

termios settings_of(int terminal) {
  termios settings{};
  REQUIRE(::tcgetattr(terminal, &settings) == 0);
  return settings;
}

// A job of one rank with a pseudo-terminal; its console is a pipe, its input whatever the test says.
struct PtyJob {
  explicit PtyJob(int stdin_fd) : in(stdin_fd), input(events, stdin_fd) { ::signal(SIGPIPE, SIG_IGN); }
  ChildStreams add() {
    ChildStreams streams = output.add_rank({}, true);
    if (streams.keyboard) input.add_terminal(std::move(streams.keyboard));
    return streams;
  }
  std::string shown_after(std::size_t size) {
    std::string text;
    run_until(events, &output, &input, [&] {
      if (has_something(console.read.get())) text += read_some(console.read.get());
      return text.size() >= size;
    });
    return text;
  }

  int in;
  OutputSpec spec{.pty = true};
  Events events;
  Pipe console = make_pipe();
  Output output{events, {.stdin_fd = in, .stdout_fd = console.write.get(), .stderr_fd = console.write.get()}, spec};
  Input input;
};

}  // namespace

TEST_CASE("pty: what the rank writes to its terminal comes out unchanged, also when it ends at once", "[launch]") {
  PtyJob job(-1);
  ChildStreams rank = job.add();
  CHECK(rank.is_terminal);
  CHECK(::isatty(rank.out_fd()) == 1);
  CHECK(rank.err_fd() == rank.out_fd());
  std::string bytes;
  for (int value = 0; value < 256; ++value) bytes.push_back(static_cast<char>(value));
  bytes += "\nlast";
  write_all(rank.out_fd(), bytes);
  rank.out.reset();
  CHECK(job.shown_after(bytes.size()) == bytes);
  run_until(job.events, &job.output, &job.input, [&] { return job.output.all_ended(); });
  CHECK(job.output.last_stderr(0).back() == "last");
}

TEST_CASE("pty: our input is typed at the rank's terminal, without an echo, up to its end", "[launch]") {
  Pipe ours = make_pipe();
  PtyJob job(ours.read.get());
  const ChildStreams rank = job.add();
  job.input.start();
  const bool mid_line = GENERATE(false, true);
  write_all(ours.write.get(), mid_line ? "one\ntwo" : "one\ntwo\n");
  ours.write.reset();
  // A terminal gives one line per read, and nothing at the end.
  std::string got;
  std::string piece = "?";
  while (!piece.empty()) {
    run_until(job.events, &job.output, &job.input, [&] { return has_something(rank.out_fd()); });
    piece = read_some(rank.out_fd());
    got += piece;
  }
  CHECK(got == (mid_line ? "one\ntwo" : "one\ntwo\n"));
  CHECK_FALSE(has_something(job.console.read.get()));
}

TEST_CASE("pty: more than a terminal holds waits for the rank", "[launch]") {
  Pipe ours = make_pipe();
  PtyJob job(ours.read.get());
  const ChildStreams rank = job.add();
  job.input.start();
  const std::string line = std::string(99, 'x') + "\n";
  std::string sent;
  for (int count = 0; count < 500; ++count) sent += line;
  write_all(ours.write.get(), sent);
  ours.write.reset();
  std::string got;
  run_until(job.events, &job.output, &job.input, [&] {
    while (has_something(rank.out_fd())) got += read_some(rank.out_fd());
    return got.size() >= sent.size();
  });
  CHECK(got == sent);
}

TEST_CASE("pty: our terminal is raw while keys go to the rank, and is restored after", "[launch]") {
  const Pty ours = make_pty(true);
  const termios before = settings_of(ours.slave.get());
  const auto is_raw = [&] { return (settings_of(ours.slave.get()).c_lflag & (ICANON | ECHO | ISIG)) == 0; };
  const auto is_restored = [&] {
    const termios now = settings_of(ours.slave.get());
    return now.c_lflag == before.c_lflag && now.c_iflag == before.c_iflag && now.c_oflag == before.c_oflag;
  };
  {
    PtyJob job(ours.slave.get());
    const ChildStreams rank = job.add();
    CHECK(is_restored());
    job.input.start();
    CHECK(is_raw());
    CHECK(settings_of(ours.slave.get()).c_oflag == before.c_oflag);
    job.input.suspend();
    CHECK(is_restored());
    job.input.resume();
    CHECK(is_raw());
    // A person sees what is typed; the rank's terminal echoes it.
    write_all(ours.master.get(), "key\r");
    CHECK(job.shown_after(4) == "key\n");
    CHECK(read_some(rank.out_fd()) == "key\n");
    write_all(ours.master.get(), "\x04");
    run_until(job.events, &job.output, &job.input, [&] { return has_something(rank.out_fd()); });
    CHECK(read_some(rank.out_fd()).empty());
  }
  CHECK(is_restored());
}

TEST_CASE("pty: the rank's window has the size of ours, also when that changes", "[launch]") {
  const Pty ours = make_pty(true);
  PtyJob job(ours.slave.get());
  const auto resize = [&](unsigned short rows) {
    const winsize size{.ws_row = rows, .ws_col = 99, .ws_xpixel = 0, .ws_ypixel = 0};
    REQUIRE(::ioctl(ours.master.get(), TIOCSWINSZ, &size) == 0);
  };
  const auto rows_of = [](int terminal) {
    winsize size{};
    REQUIRE(::ioctl(terminal, TIOCGWINSZ, &size) == 0);
    return size.ws_row;
  };
  resize(33);
  const ChildStreams rank = job.add();
  CHECK(rows_of(rank.out_fd()) == 33);
  resize(44);
  CHECK(rows_of(rank.out_fd()) == 33);
  job.output.copy_window_size();
  CHECK(rows_of(rank.out_fd()) == 44);
}

TEST_CASE("pty: a key that means a signal reaches the rank that has the terminal", "[launch]") {
  Pipe ours = make_pipe();
  PtyJob job(ours.read.get());
  ChildStreams rank = job.add();
  Pipe ready = make_pipe();
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {  // as a rank is started
    ::signal(SIGINT, SIG_DFL);
    ::setsid();
    ::ioctl(rank.out_fd(), TIOCSCTTY, 0);
    [[maybe_unused]] const ssize_t told = ::write(ready.write.get(), "x", 1);
    ::alarm(10);
    while (true) ::pause();
  }
  CHECK(read_some(ready.read.get()) == "x");
  rank.out.reset();
  job.input.start();
  write_all(ours.write.get(), "\x03");
  int status = 0;
  run_until(job.events, &job.output, &job.input, [&] { return ::waitpid(child, &status, WNOHANG) == child; });
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGINT);
  run_until(job.events, &job.output, &job.input, [&] { return job.output.all_ended(); });
}

TEST_CASE("pty: all that a rank wrote arrives though its end hangs up the terminal", "[launch]") {
  PtyJob job(-1);
  ChildStreams rank = job.add();
  const std::string text(3000, 'x');
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::setsid();
    ::ioctl(rank.out_fd(), TIOCSCTTY, 0);
    [[maybe_unused]] const ssize_t written = ::write(rank.out_fd(), text.data(), text.size());
    ::_exit(0);
  }
  rank.out.reset();
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  CHECK(job.shown_after(text.size()) == text);
}

TEST_CASE("pty: what is no terminal is left alone", "[launch]") {
  const Pipe pipe = make_pipe();
  RawTerminal none(pipe.read.get());
  CHECK_FALSE(none.is_terminal());
  none.enter();
  none.restore();
  const Pty pty = make_pty(false);
  copy_window_size(pipe.read.get(), pty.slave.get());
  CHECK((settings_of(pty.slave.get()).c_lflag & ECHO) == 0);
}

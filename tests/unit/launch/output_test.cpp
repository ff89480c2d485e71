#include "launch/output.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <utility>

#include "support/catch.hpp"

using col::launch::LineMux;
using col::launch::Output;
using col::tools::UniqueFd;

namespace {

constexpr std::uint64_t kPipe = 1ULL << 32, kSink = 2ULL << 32;

struct Pipe {
  UniqueFd read, write;
};

Pipe make_pipe() {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

UniqueFd non_blocking(UniqueFd fd) {
  REQUIRE(::fcntl(fd.get(), F_SETFL, O_NONBLOCK) == 0);
  return fd;
}

// Handles what epoll has until nothing more happens.
void run(int epoll, Output& output) {
  bool more = true;
  while (true) {
    std::array<epoll_event, 16> events;
    const int count = ::epoll_wait(epoll, events.data(), events.size(), 0);
    if (count <= 0 && !more) return;
    for (int index = 0; index < count; ++index) {
      const std::uint64_t data = events[static_cast<std::size_t>(index)].data.u64;
      if ((data & kPipe) != 0) output.on_pipe(data & 0xffffffff);
      if ((data & kSink) != 0) output.on_sink(data & 0xffffffff);
    }
    more = output.work(LineMux::Clock::now());
  }
}

std::string read_some(int fd) {
  std::string text(1 << 20, '\0');
  const ssize_t length = ::read(fd, text.data(), text.size());
  return length < 0 ? "" : text.substr(0, static_cast<std::size_t>(length));
}

void write_all(int fd, const std::string& text) {
  REQUIRE(::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

}  // namespace

TEST_CASE("output: a full reader stops the reading, and nothing is lost when it goes on", "[launch]") {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  Pipe user = make_pipe();
  Pipe error = make_pipe();
  Pipe rank = make_pipe();
  Output output(epoll.get(), kPipe, kSink, user.write.get(), error.write.get());
  output.add(Output::Stream::out, "", non_blocking(std::move(rank.read)));
  rank.write = non_blocking(std::move(rank.write));

  const std::string line = std::string(999, 'x') + "\n";
  std::size_t sent = 0;
  for (int idle = 0; idle < 2; ++idle) {
    while (::write(rank.write.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size())) {
      sent += line.size();
      idle = 0;
    }
    run(epoll.get(), output);
  }
  CHECK(sent < 1000 * 1000);  // the reader has read nothing: the writer had to stop
  CHECK_FALSE(output.all_written());
  rank.write.reset();
  std::size_t got = 0;
  while (!output.all_ended() || !output.all_written()) {
    got += read_some(user.read.get()).size();
    run(epoll.get(), output);
  }
  user.read = non_blocking(std::move(user.read));
  got += read_some(user.read.get()).size();
  CHECK(got == sent);
  CHECK(output.error() == 0);
}

TEST_CASE("output: stdout and stderr stay apart unless the user joined them", "[launch]") {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  Pipe user = make_pipe();
  Pipe other = make_pipe();
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  const bool joined = GENERATE(false, true);
  Output output(epoll.get(), kPipe, kSink, user.write.get(), joined ? user.write.get() : other.write.get());
  output.add(Output::Stream::out, "", non_blocking(std::move(out.read)));
  output.add(Output::Stream::err, "", non_blocking(std::move(err.read)));
  write_all(out.write.get(), "begun ");
  write_all(err.write.get(), "error\n");
  run(epoll.get(), output);
  write_all(out.write.get(), "and ended\n");
  run(epoll.get(), output);
  if (joined) {
    CHECK(read_some(user.read.get()) == "error\nbegun and ended\n");
  } else {
    CHECK(read_some(user.read.get()) == "begun and ended\n");
    CHECK(read_some(other.read.get()) == "error\n");
  }
}

TEST_CASE("output: a reader that is gone shows as an error and closes the ranks' pipes", "[launch]") {
  ::signal(SIGPIPE, SIG_IGN);
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  Pipe user = make_pipe();
  Pipe error = make_pipe();
  Pipe rank = make_pipe();
  Output output(epoll.get(), kPipe, kSink, user.write.get(), error.write.get());
  output.add(Output::Stream::out, "", non_blocking(std::move(rank.read)));
  user.read.reset();
  write_all(rank.write.get(), "line\n");
  run(epoll.get(), output);
  CHECK(output.error() == EPIPE);
  CHECK(output.all_ended());
  CHECK(output.all_written());
  CHECK(::write(rank.write.get(), "x", 1) == -1);
}

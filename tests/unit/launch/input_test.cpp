#include "launch/output/input.hpp"

#include <sys/socket.h>

#include <csignal>
#include <fstream>
#include <random>
#include <string>
#include <utility>
#include <vector>

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
  Job(UniqueFd from, int ranks) : input(epoll.get(), kInput, from.get()) {
    ::signal(SIGPIPE, SIG_IGN);
    for (int rank = 0; rank < ranks; ++rank) {
      readers.push_back(input.add_pipe());
      set_non_blocking(readers.back());
    }
    got.resize(readers.size());
    at_end.resize(readers.size());
  }
  void run() { col::test::run(epoll, nullptr, &input); }
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
    run_until(epoll, nullptr, &input, [&] {
      bool all = true;
      for (std::size_t rank = 0; rank < readers.size(); ++rank) {
        if (readers[rank]) take(rank);
        all = all && (at_end[rank] || !readers[rank]);
      }
      return all;
    });
  }

  UniqueFd epoll = make_epoll_for_test();
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
    run_until(job.epoll, nullptr, &job.input, [&] {
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
    run_until(job.epoll, nullptr, &job.input, [&] {
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

#include "launch/output/output.hpp"

#include <csignal>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "unit/launch/output_support.hpp"

using namespace col::launch;
using namespace col::test;

namespace {

// A console of two pipes, and an Output on it.
struct RunningJob : OutputJob {
  explicit RunningJob(const OutputSpec& output_spec = {}, int ranks = 2)
      : OutputJob(output_spec, ranks, Console::two_pipes) {}
};

}  // namespace

TEST_CASE("output: a full reader stops the reading, and nothing is lost when it goes on", "[launch]") {
  RunningJob job;
  ChildStreams rank = job.add(0);
  rank.err.reset();
  set_non_blocking(rank.out);
  const std::string line = std::string(999, 'x') + "\n";
  std::size_t sent = 0;
  for (int idle = 0; idle < 2; ++idle) {
    while (const std::size_t written = write_some(rank.out.get(), line)) {
      sent += written;
      idle = 0;
    }
    job.run();
  }
  CHECK(sent < 1000 * 1000);  // the reader has read nothing: the writer had to stop
  CHECK_FALSE(job.output.all_written());
  rank.out.reset();
  std::size_t got = 0;
  while (!job.output.all_ended() || !job.output.all_written()) {
    got += read_some(job.console.read.get()).size();
    job.run();
  }
  while (has_something(job.console.read.get())) got += read_some(job.console.read.get()).size();
  CHECK(got == sent);
  CHECK(job.output.error() == 0);
}

TEST_CASE("output: many ranks share a slow reader fairly, in bounded memory", "[launch]") {
  constexpr int kRanks = 16;
  RunningJob job({.label = "[%r] "}, kRanks);
  std::vector<ChildStreams> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.push_back(job.add(rank));
    set_non_blocking(ranks.back().out);
  }
  const std::string line = std::string(99, 'x') + "\n";
  std::vector<std::size_t> sent(kRanks);
  for (int round = 0; round < 200; ++round) {
    for (int rank = 0; rank < kRanks; ++rank) {
      // Whole lines only, so that what a rank got rid of counts in lines.
      while (write_some(ranks[static_cast<std::size_t>(rank)].out.get(), line) == line.size()) {
        ++sent[static_cast<std::size_t>(rank)];
      }
    }
    job.run();
    read_some(job.console.read.get());
  }
  const auto [least, most] = std::minmax_element(sent.begin(), sent.end());
  CHECK(*least > 1000);
  CHECK(*most < 2 * *least);
}

TEST_CASE("output: stdout and stderr stay apart unless the user joined them", "[launch]") {
  const bool joined = GENERATE(false, true);
  const UniqueFd epoll = make_epoll_for_test();
  const Pipe user = make_pipe();
  const Pipe other = make_pipe();
  const OutputSpec spec;
  Output output({.epoll_fd = epoll.get(),
                 .pipe_tag = kPipe,
                 .sink_tag = kSink,
                 .stdout_fd = user.write.get(),
                 .stderr_fd = joined ? user.write.get() : other.write.get()},
                spec);
  const ChildStreams rank = output.add_rank({}, false);
  write_all(rank.out_fd(), "begun ");
  write_all(rank.err_fd(), "error\n");
  run(epoll, &output);
  write_all(rank.out_fd(), "and ended\n");
  run(epoll, &output);
  if (joined) {
    CHECK(read_some(user.read.get()) == "error\nbegun and ended\n");
  } else {
    CHECK(read_some(user.read.get()) == "begun and ended\n");
    CHECK(read_some(other.read.get()) == "error\n");
  }
}

TEST_CASE("output: merged streams keep the order in which the rank wrote them", "[launch]") {
  RunningJob job({.merge = true});
  const ChildStreams rank = job.add(0);
  CHECK(rank.err_fd() == rank.out_fd());
  write_all(rank.out_fd(), "one\n");
  write_all(rank.err_fd(), "two\n");
  write_all(rank.out_fd(), "three\n");
  job.run();
  CHECK(read_some(job.console.read.get()) == "one\ntwo\nthree\n");
  CHECK_FALSE(has_something(job.errors.read.get()));
  CHECK(job.output.last_stderr(0) == std::vector<std::string>{"one", "two", "three"});
}

TEST_CASE("output: a line begins with the time and then the label by its pattern", "[launch]") {
  RunningJob job({.label = "%r/%w %s: ", .timestamps = true});
  const ChildStreams rank = job.add(1);
  write_all(rank.out_fd(), "a\n");
  write_all(rank.err_fd(), "b\n");
  job.run();
  const auto check = [](const std::string& line, const std::string& rest) {
    REQUIRE(line.size() == 16 + rest.size());
    const std::string shape = "00:00:00.000000 ";
    for (std::size_t at = 0; at < shape.size(); ++at) {
      CHECK((shape[at] == '0' ? std::isdigit(static_cast<unsigned char>(line[at])) != 0 : line[at] == shape[at]));
    }
    CHECK(line.substr(16) == rest);
  };
  check(read_some(job.console.read.get()), "1/2 out: a\n");
  check(read_some(job.errors.read.get()), "1/2 err: b\n");
}

TEST_CASE("output: a reader that is gone shows as an error and closes the ranks' pipes", "[launch]") {
  RunningJob job;
  ChildStreams rank = job.add(0);
  rank.err.reset();
  job.console.read.reset();
  write_all(rank.out_fd(), "line\n");
  job.run();
  CHECK(job.output.error() == EPIPE);
  CHECK(job.output.error_file().empty());
  CHECK(job.output.all_ended());
  CHECK(job.output.all_written());
  CHECK(::write(rank.out_fd(), "x", 1) == -1);
}

TEST_CASE("output: only the chosen ranks show on the console, and the others are read", "[launch]") {
  RunningJob job({.label = "[%r] ", .console_ranks = {1, 3}}, 4);
  std::vector<ChildStreams> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    ranks.push_back(job.add(rank));
    write_all(ranks.back().out_fd(), "line\n");
    write_all(ranks.back().err_fd(), fmt::format("error of {}\n", rank));
  }
  job.run();
  CHECK(read_some(job.console.read.get()) == "[1] line\n[3] line\n");
  CHECK(read_some(job.errors.read.get()) == "[1] error of 1\n[3] error of 3\n");
  CHECK(job.output.last_stderr(2) == std::vector<std::string>{"error of 2"});
  // Much more than any pipe holds: somebody reads it.
  const std::string much(64 * 1024, 'x');
  for (int count = 0; count < 4; ++count) {
    write_all(ranks[0].out_fd(), much);
    write_all(ranks[0].err_fd(), much);
    job.run();
  }
  CHECK_FALSE(has_something(job.console.read.get()));
}

TEST_CASE("output: lines of another node's launcher join as they are", "[launch]") {
  RunningJob job({.label = "[%r] ", .timestamps = true, .console_ranks = {0}});
  Pipe remote = make_pipe();
  job.output.add_raw(Output::Stream::out, std::move(remote.read));
  write_all(remote.write.get(), "[5] from afar\n[6] hal");
  job.run();
  CHECK(read_some(job.console.read.get()) == "[5] from afar\n");
  CHECK(job.output.ranks_ended());
  CHECK_FALSE(job.output.all_ended());
  write_all(remote.write.get(), "f\n");
  remote.write.reset();
  job.run();
  CHECK(read_some(job.console.read.get()) == "[6] half\n");
  CHECK(job.output.all_ended());
}

TEST_CASE("output: a restart begins with fresh ranks while other nodes' lines go on", "[launch]") {
  RunningJob job({.label = "[%r.%g] "});
  Pipe remote = make_pipe();
  job.output.add_raw(Output::Stream::out, std::move(remote.read));
  for (int restart = 0; restart < 5; ++restart) {
    // The last attempt leaves somebody behind who holds its pipes.
    const ChildStreams one = job.add(0, restart);
    const ChildStreams other = job.add(1, restart);
    write_all(one.out_fd(), "one\n");
    write_all(other.err_fd(), fmt::format("error {}\n", restart));
    write_all(remote.write.get(), "remote\n");
    job.run();
    CHECK(job.output.last_stderr(1) == std::vector<std::string>{fmt::format("error {}", restart)});
    std::string lines = read_some(job.console.read.get());
    CHECK((lines == fmt::format("[0.{}] one\nremote\n", restart) ||
           lines == fmt::format("remote\n[0.{}] one\n", restart)));
    CHECK(read_some(job.errors.read.get()) == fmt::format("[1.{0}] error {0}\n", restart));
    job.output.forget_ranks(LineMux::Clock::now());
    CHECK(job.output.ranks_ended());
    CHECK(::write(one.out_fd(), "x", 1) == -1);
  }
  CHECK(job.output.error() == 0);
  CHECK_FALSE(job.output.all_ended());
}

#include <sys/stat.h>

#include <csignal>
#include <fstream>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "launch/output/output.hpp"
#include "launch/output/sink.hpp"
#include "launch/output/terminal.hpp"
#include "support/temp_dir.hpp"
#include "unit/launch/fake_files.hpp"
#include "unit/launch/output_support.hpp"

using namespace col::launch;
using namespace col::test;
using Catch::Matchers::Contains;
using Lines = std::vector<std::string>;

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
  Events events;
  const Pipe user = make_pipe();
  const Pipe other = make_pipe();
  const OutputSpec spec;
  Output output(events, {.stdout_fd = user.write.get(), .stderr_fd = joined ? user.write.get() : other.write.get()},
                spec);
  const ChildStreams rank = output.add_rank({}, false);
  write_all(rank.out_fd(), "begun ");
  write_all(rank.err_fd(), "error\n");
  run(events, &output);
  write_all(rank.out_fd(), "and ended\n");
  run(events, &output);
  if (joined) {
    CHECK(read_some(user.read.get()) == "error\nbegun and ended\n");
  } else {
    CHECK(read_some(user.read.get()) == "begun and ended\n");
    CHECK(read_some(other.read.get()) == "error\n");
  }
}

TEST_CASE("output: a terminal shows a line that is not ended after a silence, a pipe never", "[launch]") {
  const Pty terminal = make_pty(false);
  const Pipe pipe = make_pipe();
  CHECK(unfinished_at(terminal.slave.get()) == Unfinished::shown);
  CHECK(unfinished_at(pipe.write.get()) == Unfinished::held);
  const Unfinished unfinished = GENERATE(Unfinished::shown, Unfinished::held);
  RunningJob job({.out = unfinished});
  const ChildStreams rank = job.add(0);
  write_all(rank.out_fd(), "name? ");
  job.run();
  CHECK_FALSE(has_something(job.console.read.get()));
  job.output.work(LineMux::Clock::now() + std::chrono::hours(1));
  CHECK(has_something(job.console.read.get()) == (unfinished == Unfinished::shown));
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
  CHECK(job.output.error_file() == "stdout");
  CHECK(job.output.is_cut_off());
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

namespace {

// One attempt of a job whose console is a pipe of its own.
struct FileJob : OutputJob {
  explicit FileJob(const OutputSpec& output_spec, int ranks = 2) : OutputJob(output_spec, ranks, Console::one_pipe) {}
};

bool is_regular_file(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
}

}  // namespace

TEST_CASE("output files: a rank writes to its own files itself when nothing is to be added", "[launch]") {
  const TempDir folder;
  FileJob job({.file_pattern = folder / "a/%h/%R.%s"}, 12);
  const ChildStreams rank = job.add(3);
  CHECK(is_regular_file(rank.out_fd()));
  CHECK((::fcntl(rank.out_fd(), F_GETFL) & (O_APPEND | O_NONBLOCK)) == O_APPEND);
  write_all(rank.out_fd(), std::string("\0\xff out", 6));
  write_all(rank.err_fd(), "one\ntwo\n");
  CHECK(content_of(folder / "a//03.out") == std::string("\0\xff out", 6));
  CHECK(content_of(folder / "a//03.err") == "one\ntwo\n");
  CHECK(job.output.last_stderr(3) == Lines{"one", "two"});
  CHECK(job.output.all_ended());
  CHECK_FALSE(has_something(job.console.read.get()));
}

TEST_CASE("output files: with labels or timestamps they are in the files", "[launch]") {
  const TempDir folder;
  FileJob job({.label = "<%r> ", .file_pattern = folder / "%r.%s"});
  const ChildStreams rank = job.add(1);
  CHECK_FALSE(is_regular_file(rank.out_fd()));
  write_all(rank.out_fd(), "one\ntw");
  write_all(rank.err_fd(), "error\n");
  job.run();
  write_all(rank.out_fd(), "o\n");
  job.run();
  CHECK(content_of(folder / "1.out") == "<1> one\n<1> two\n");
  CHECK(content_of(folder / "1.err") == "<1> error\n");
  CHECK(job.output.last_stderr(1) == Lines{"error"});
}

TEST_CASE("output files: a new job empties them, a restart appends to them", "[launch]") {
  const TempDir folder;
  const bool labelled = GENERATE(false, true);
  const std::string label = labelled ? "- " : "";
  const std::string path = folder / "0.out";
  const OutputSpec spec{.label = label, .file_pattern = folder / "%r.%s"};
  for (int run = 0; run < 2; ++run) {
    FileJob job(spec);
    const ChildStreams first = job.add(0);
    write_all(first.out_fd(), run == 0 ? "a long line of the first run\n" : "short\n");
    write_all(first.err_fd(), "first\n");
    job.run();
    CHECK(content_of(path) == label + (run == 0 ? "a long line of the first run\n" : "short\n"));
    job.output.forget_ranks(LineMux::Clock::now());
    const ChildStreams second = job.add(0, 1);
    write_all(second.out_fd(), "again\n");
    write_all(second.err_fd(), "second\n");
    job.run();
    CHECK(content_of(path).ends_with("\n" + label + "again\n"));
    CHECK(job.output.last_stderr(0) == Lines{"second"});
  }
  CHECK(content_of(path) == label + "short\n" + label + "again\n");
}

TEST_CASE("output files: streams of one name share one file", "[launch]") {
  const TempDir folder;
  SECTION("both of a rank") {
    FileJob job({.file_pattern = folder / "%r"});
    const ChildStreams rank = job.add(0);
    CHECK(rank.out_fd() == rank.err_fd());
    write_all(rank.out_fd(), "one\n");
    write_all(rank.err_fd(), "two\n");
    CHECK(content_of(folder / "0") == "one\ntwo\n");
    CHECK(job.output.last_stderr(0) == Lines{"one", "two"});
  }
  SECTION("those of all ranks, with their lines whole") {
    FileJob job({.file_pattern = folder / "all.%s"});
    const ChildStreams one = job.add(0);
    const ChildStreams other = job.add(1);
    write_all(one.out_fd(), "one begins ");
    write_all(other.out_fd(), "other\n");
    job.run();
    job.output.work(LineMux::Clock::now() + std::chrono::hours(1));
    write_all(one.out_fd(), "and ends\n");
    write_all(other.err_fd(), "error\n");
    job.run();
    CHECK(content_of(folder / "all.out") == "other\none begins and ends\n");
    CHECK(content_of(folder / "all.err") == "error\n");
  }
}

TEST_CASE("output files: with tee the console has it as well, and may go away", "[launch]") {
  const TempDir folder;
  FileJob job({.file_pattern = folder / "%r", .tee = true, .console_ranks = {0}});
  const ChildStreams shown = job.add(0);
  const ChildStreams hidden = job.add(1);
  write_all(shown.out_fd(), "shown\n");
  write_all(hidden.out_fd(), "hidden\n");
  job.run();
  CHECK(read_some(job.console.read.get()) == "shown\n");
  job.console.read.reset();
  for (int line = 0; line < 3; ++line) {
    write_all(shown.out_fd(), "more\n");
    job.run();
  }
  job.output.say("to nobody");
  job.run();
  CHECK(job.output.error() == 0);
  CHECK(job.output.all_written());
  CHECK(content_of(folder / "0") == "shown\nmore\nmore\nmore\n");
  CHECK(content_of(folder / "1") == "hidden\n");
}

TEST_CASE("output files: a slow console holds the ranks back, and their files get everything", "[launch]") {
  const TempDir folder;
  FileJob job({.file_pattern = folder / "%r", .tee = true}, 1);
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
  CHECK(sent < 1000 * 1000);
  job.console.read.reset();
  rank.out.reset();
  run_until(job.events, &job.output, nullptr, [&] { return job.output.all_ended() && job.output.all_written(); });
  CHECK(content_of(folder / "0").size() == sent);
  CHECK(job.output.error() == 0);
}

TEST_CASE("output files: a full disk is an error that names the file", "[launch]") {
  FileJob job({.label = "- ", .file_pattern = "/dev/full"}, 1);
  const ChildStreams rank = job.add(0);
  write_all(rank.out_fd(), "line\n");
  job.run();
  CHECK(job.output.error() == ENOSPC);
  CHECK(job.output.error_file() == "/dev/full");
  CHECK(job.output.all_ended());
}

TEST_CASE("output files: a full disk under the console is told and ends nothing, as the files have it all",
          "[launch]") {
  const TempDir folder;
  Events events;
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  const OutputSpec spec{.file_pattern = folder / "%r", .tee = true};
  Output output(events, {.stdout_fd = full.get(), .stderr_fd = full.get()}, spec);
  const ChildStreams rank = output.add_rank({}, false);
  for (int line = 0; line < 3; ++line) {
    write_all(rank.out_fd(), "line\n");
    run(events, &output);
  }
  CHECK(output.error() == ENOSPC);
  CHECK(output.error_file() == "stdout");
  CHECK_FALSE(output.is_cut_off());
  CHECK(content_of(folder / "0") == "line\nline\nline\n");
}

TEST_CASE("output files: what cannot be opened is refused with the reason and a way out", "[launch]") {
  const TempDir folder;
  std::ofstream(folder / "file") << "x";
  REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  OutputFiles files;
  const auto refusal = [&](const std::string& path) { return refusal_of(125, [&] { files.open(path, false); }); };
  CHECK(refusal(folder / "file/below") ==
        fmt::format("cannot open the output file '{0}/file/below': Not a directory; name another place for the output",
                    folder.path()));
  CHECK_THAT(refusal(folder / "file/much/below"), Contains("cannot create the directory") && Contains("below"));
  CHECK_THAT(refusal(folder.path()), Contains("Is a directory; name a file in it"));
  CHECK_THAT(refusal(folder / "fifo"), Contains("nobody reads this named pipe; start its reader first"));
  CHECK_THAT(refusal("/proc/nothing/here"), Contains("cannot create the directory '/proc/nothing'"));
}

TEST_CASE("output files: directories get the rights that the user's mask allows", "[launch]") {
  const TempDir folder;
  const mode_t before = ::umask(027);
  OutputFiles files;
  files.open(folder / "a/b/c", false);
  ::umask(before);
  struct stat info {};
  REQUIRE(::stat((folder / "a/b").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0750);
  REQUIRE(::stat((folder / "a/b/c").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0640);
}

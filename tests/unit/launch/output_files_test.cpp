#include "launch/output/output_files.hpp"

#include <sys/stat.h>

#include <csignal>
#include <fstream>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "launch/job/launch_error.hpp"
#include "support/temp_dir.hpp"
#include "unit/launch/output_support.hpp"

using namespace col::launch;
using namespace col::test;
using Catch::Matchers::Contains;
using Lines = std::vector<std::string>;

namespace {

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

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
  CHECK(content(folder / "a//03.out") == std::string("\0\xff out", 6));
  CHECK(content(folder / "a//03.err") == "one\ntwo\n");
  CHECK(job.output.last_stderr(0) == Lines{"one", "two"});
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
  CHECK(content(folder / "1.out") == "<1> one\n<1> two\n");
  CHECK(content(folder / "1.err") == "<1> error\n");
  CHECK(job.output.last_stderr(0) == Lines{"error"});
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
    CHECK(content(path) == label + (run == 0 ? "a long line of the first run\n" : "short\n"));
    job.output.forget_ranks(LineMux::Clock::now());
    const ChildStreams second = job.add(0, 1);
    write_all(second.out_fd(), "again\n");
    write_all(second.err_fd(), "second\n");
    job.run();
    CHECK(content(path).ends_with("\n" + label + "again\n"));
    CHECK(job.output.last_stderr(0) == Lines{"second"});
  }
  CHECK(content(path) == label + "short\n" + label + "again\n");
}

TEST_CASE("output files: streams of one name share one file", "[launch]") {
  const TempDir folder;
  SECTION("both of a rank") {
    FileJob job({.file_pattern = folder / "%r"});
    const ChildStreams rank = job.add(0);
    CHECK(rank.out_fd() == rank.err_fd());
    write_all(rank.out_fd(), "one\n");
    write_all(rank.err_fd(), "two\n");
    CHECK(content(folder / "0") == "one\ntwo\n");
    CHECK(job.output.last_stderr(0) == Lines{"one", "two"});
  }
  SECTION("those of all ranks, with their lines whole") {
    FileJob job({.file_pattern = folder / "all.%s"});
    const ChildStreams one = job.add(0);
    const ChildStreams other = job.add(1);
    write_all(one.out_fd(), "one begins ");
    write_all(other.out_fd(), "other\n");
    job.run();
    write_all(one.out_fd(), "and ends\n");
    write_all(other.err_fd(), "error\n");
    job.run();
    CHECK(content(folder / "all.out") == "other\none begins and ends\n");
    CHECK(content(folder / "all.err") == "error\n");
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
  CHECK(content(folder / "0") == "shown\nmore\nmore\nmore\n");
  CHECK(content(folder / "1") == "hidden\n");
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
  run_until(job.epoll, &job.output, nullptr, [&] { return job.output.all_ended() && job.output.all_written(); });
  CHECK(content(folder / "0").size() == sent);
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

TEST_CASE("output files: what cannot be opened is refused with the reason and a way out", "[launch]") {
  const TempDir folder;
  std::ofstream(folder / "file") << "x";
  REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  OutputFiles files;
  const auto refusal = [&](const std::string& path) -> std::string {
    try {
      files.open(path, false);
    } catch (const LaunchError& error) {
      CHECK(error.exit_code() == col::tools::exit_code::kLauncher);
      return error.what();
    }
    return "opened";
  };
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

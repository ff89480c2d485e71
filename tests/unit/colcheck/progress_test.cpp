#include "colcheck/progress.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <string>

#include "common/text.hpp"
#include "common/unique_fd.hpp"
#include "results.hpp"
#include "support/catch.hpp"

using namespace col::colcheck;
namespace tools = col::tools;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

const Advance kAdvance{1204, 2412, 0, "np 5 over gloo: exact allreduce", seconds(7)};

// Stands in for the terminal, and for the time.
class Terminal {
 public:
  Terminal() {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    reader_.reset(ends[0]);
    writer_.reset(ends[1]);
    ::fcntl(reader_.get(), F_SETFL, O_NONBLOCK);
    time_ = Progress::Clock::time_point(std::chrono::hours(1));
  }
  int fd() const { return writer_.get(); }
  // What has been drawn since the last call.
  std::string take() {
    std::string text(1 << 16, '\0');
    const ssize_t length = ::read(reader_.get(), text.data(), text.size());
    text.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
    return text;
  }
  // Now a write would block.
  void fill() const {
    const std::string filling(4096, 'x');
    ::fcntl(writer_.get(), F_SETFL, O_NONBLOCK);
    while (::write(writer_.get(), filling.data(), filling.size()) > 0) {
    }
    ::fcntl(writer_.get(), F_SETFL, 0);
  }
  void close_reader() { reader_.reset(); }

  static Progress::Clock::time_point now() { return time_; }
  static void pass(milliseconds time) { time_ += time; }

 private:
  col::tools::UniqueFd reader_, writer_;
  inline static Progress::Clock::time_point time_;
};

}  // namespace

TEST_CASE("progress line: says how far, where, what, and for how long", "[colcheck]") {
  CHECK(progress_line(kAdvance, 100, true) ==
        "colcheck: 1,204/2,412  np 5 over gloo: exact allreduce …  0 failed  7 s");
  CHECK(progress_line(kAdvance, 100, false) ==
        "colcheck: 1,204/2,412  np 5 over gloo: exact allreduce ...  0 failed  7 s");
  CHECK(progress_line({12, 0, 3, "", seconds(125)}, 100, true) == "colcheck: 12  3 failed  2 min 05 s");
  Case c;
  c.backend = "gloo";
  c.ranks = 5;
  c.primitive = Primitive::allreduce;
  CHECK(activity_of(c) == "np 5 over gloo: exact allreduce");
  c.backend.clear();
  CHECK(activity_of(c) == "exact allreduce");
}

TEST_CASE("progress line: never wider than it may be; the activity goes first", "[colcheck]") {
  const std::string whole = progress_line(kAdvance, 100, true);
  for (const bool utf8 : {true, false}) {
    for (std::size_t width = 0; width < 90; ++width) {
      const std::string line = progress_line(kAdvance, width, utf8);
      CHECK(tools::columns_of(line) <= width);
      if (width >= 36) CHECK(line.ends_with("  0 failed  7 s"));
    }
  }
  CHECK(progress_line(kAdvance, tools::columns_of(whole), true) == whole);
  CHECK(progress_line(kAdvance, tools::columns_of(whole) - 4, true) ==
        "colcheck: 1,204/2,412  np 5 over gloo: exact allre …  0 failed  7 s");
  CHECK(progress_line(kAdvance, 45, true) == "colcheck: 1,204/2,412  0 failed  7 s");
  CHECK(progress_line(kAdvance, 15, true) == "colcheck: 1,204");
}

TEST_CASE("progress: at most ten times a second, in place, and gone in the end", "[colcheck]") {
  Terminal terminal;
  {
    Progress progress(terminal.fd(), 80, true, &Terminal::now);
    progress.plan(40);
    const Case c = passed("gloo").c;
    progress.begin(c);
    CHECK(terminal.take() == "\rcolcheck: 0/40  np 3 over gloo: exact allreduce …  0 failed  0 s\x1b[K");
    Terminal::pass(milliseconds(99));
    progress.begin(c);
    CHECK(terminal.take().empty());
    Terminal::pass(milliseconds(1));
    progress.end(failed("gloo", Primitive::scan, 1, "x"));
    CHECK(terminal.take() == "\rcolcheck: 1/40  np 3 over gloo: exact allreduce …  1 failed  0 s\x1b[K");
    Terminal::pass(seconds(1));
    progress.begin(passed("shm", Primitive::scan).c);
    // Shorter than before, or than what another process has drawn: the rest is erased.
    CHECK(terminal.take() == "\rcolcheck: 2/40  np 3 over shm: exact scan …  1 failed  1 s\x1b[K");
    progress.clear();
    CHECK(terminal.take() == "\r\x1b[K");
    progress.clear();
    CHECK(terminal.take().empty());
    Terminal::pass(seconds(1));
    progress.begin(c);
    CHECK(terminal.take().starts_with("\rcolcheck: 3/40"));
  }
  CHECK(terminal.take().ends_with("\r\x1b[K"));
  tools::StatusLine::clear_any(terminal.fd());
  CHECK(terminal.take() == "\r\x1b[K");
  tools::StatusLine::clear_any(-1);
  CHECK(terminal.take().empty());
}

TEST_CASE("progress: results that come together count once", "[colcheck]") {
  Terminal terminal;
  Progress progress(terminal.fd(), 80, true, &Terminal::now);
  progress.plan(3);
  const auto drawn = [&] {
    Terminal::pass(seconds(1));
    progress.begin(passed("shm").c);
    return terminal.take().substr(0, 14);
  };
  CHECK(drawn() == "\rcolcheck: 0/3");
  CHECK(drawn() == "\rcolcheck: 1/3");
  for (int i = 0; i < 2; ++i) progress.end(passed("shm"));
  CHECK(drawn() == "\rcolcheck: 2/3");
  progress.end(passed("shm"));
  // What is tried beyond the plan, to find smaller cases, is not counted.
  CHECK(drawn() == "\rcolcheck: 3/3");
  CHECK(drawn() == "\rcolcheck: 3/3");
}

TEST_CASE("progress: nothing where there is no terminal, none that is wide enough, or none that takes it",
          "[colcheck]") {
  Terminal terminal;
  const auto draw = [&](int fd, int width) {
    Progress progress(fd, width, true, &Terminal::now);
    Terminal::pass(seconds(1));
    progress.begin(passed("shm").c);
  };
  draw(-1, 80);
  draw(terminal.fd(), 0);
  draw(terminal.fd(), 1);
  CHECK(terminal.take().empty());
  terminal.fill();
  draw(terminal.fd(), 80);  // does not wait for room
  std::string text;
  for (std::string part; !(part = terminal.take()).empty();) text += part;
  CHECK(text.find_first_not_of('x') == std::string::npos);
  CHECK_FALSE(text.empty());
  terminal.close_reader();
  draw(terminal.fd(), 80);  // and does not die of SIGPIPE
}

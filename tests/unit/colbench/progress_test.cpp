#include "colbench/report/progress.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <string>

#include "common/text.hpp"
#include "common/unique_fd.hpp"
#include "support/catch.hpp"

using namespace col::colbench;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

const Advance kAdvance{12, 160, 1, 3, "allreduce 32M ring", seconds(41)};

// Stands in for the time.
Progress::Clock::time_point fake_time() {
  static Progress::Clock::time_point time(std::chrono::hours(1));
  return time += milliseconds(30);
}

}  // namespace

TEST_CASE("progress line: says how far, what, and for how long", "[colbench]") {
  CHECK(progress_line(kAdvance, 100, true) == "colbench: 12/160 cells, launch 2/3, allreduce 32M ring …  41 s");
  CHECK(progress_line(kAdvance, 100, false) == "colbench: 12/160 cells, launch 2/3, allreduce 32M ring ...  41 s");
  CHECK(progress_line({0, 0, 0, 1, "measuring the machine", seconds(125)}, 100, true) ==
        "colbench: measuring the machine …  2 min 05 s");
  CHECK(progress_line({1, 2, 0, 1, "", seconds(3)}, 100, true) == "colbench: 1/2 cells  3 s");
  CellSpec spec;
  spec.bytes = 32 << 20;
  spec.algorithm = "ring";
  CHECK(activity_of(spec) == "allreduce 32M ring");
  spec.operation = Operation::barrier;
  CHECK(activity_of(spec) == "barrier ring");
  spec.operation = Operation::pingpong;
  CHECK(activity_of(spec) == "pingpong 32M");
}

TEST_CASE("progress line: never wider than it may be; the activity goes first", "[colbench]") {
  for (const bool utf8 : {true, false}) {
    for (std::size_t width = 0; width < 80; ++width) {
      const std::string line = progress_line(kAdvance, width, utf8);
      CAPTURE(width, line);
      CHECK(col::tools::columns_of(line) <= width);
    }
  }
  CHECK(progress_line(kAdvance, 53, true) == "colbench: 12/160 cells, launch 2/3, allreduce …  41 s");
  CHECK(progress_line(kAdvance, 42, true) == "colbench: 12/160 cells, launch 2/3  41 s");
  Advance nasty = kAdvance;
  nasty.activity = "a\x1b[31m\nb";
  CHECK(progress_line(nasty, 100, true).find('\x1b') == std::string::npos);
}

TEST_CASE("progress: drawn at most ten times a second, and not without a terminal", "[colbench]") {
  std::array<int, 2> ends{};
  REQUIRE(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) == 0);
  const col::tools::UniqueFd reader(ends[0]), writer(ends[1]);
  {
    Progress progress(writer.get(), 80, true, fake_time);
    for (int i = 0; i < 100; ++i) progress.show(kAdvance);
  }
  std::string text(1 << 16, '\0');
  const ssize_t length = ::read(reader.get(), text.data(), text.size());
  REQUIRE(length > 0);
  text.resize(static_cast<std::size_t>(length));
  std::size_t drawn = 0;
  for (std::size_t at = text.find("colbench:"); at != std::string::npos; at = text.find("colbench:", at + 1)) ++drawn;
  // Every 30 ms of 3 s: each fourth call is 100 ms after the last that drew.
  CHECK(drawn == 25);
  CHECK(text.find("allreduce 32M ring …  2 s") != std::string::npos);

  Progress nothing(-1, 80, true, fake_time);
  nothing.show(kAdvance);
  CHECK(::read(reader.get(), text.data(), text.size()) < 0);
}

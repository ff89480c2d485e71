// How many launches a run takes, and how it shows its progress.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "colbench/launching.hpp"
#include "colbench/report/progress.hpp"
#include "common/text.hpp"
#include "common/unique_fd.hpp"
#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace col::colbench;
using Catch::Matchers::Contains;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

Probe steady() {
  return {5e-5, 3e-4};
}

const std::vector<CellSpec> kCells = {{.bytes = 8}, {.bytes = 16}};

struct Run {
  Results all;
  std::vector<int> calibrated_before;  // launches
};

// Launches whose medians differ by `step` from one to the next, up and down.
Run run_with(const Method& method, double step, const std::string& launcher = "colbench") {
  Run run;
  run.all.run.launcher = launcher;
  run_launches(
      run.all, method, kCells,
      [&](const col::colbench::Order& order) {
        Results one;
        if (order.calibrations > 0) run.calibrated_before.push_back(order.launch);
        for (const CellSpec& spec : order.cells) {
          one.cells.push_back({.spec = spec});
          if (order.calibrations > 0) continue;
          const double seconds = 1e-3 * (1 + step * (order.launch % 2 == 0 ? 1 : -1));
          one.cells.back().launches.push_back(
              {.launch = order.launch, .seconds = std::vector(5, seconds), .start_skew = std::vector(5, 0.0)});
        }
        return one;
      },
      &steady);
  return run;
}

}  // namespace

TEST_CASE("launching: sampling ends after ten launches that agree, and goes on to forty that do not", "[colbench]") {
  const Method method{.max_time = std::chrono::hours(1)};  // of real time: the machine may be busy
  Run agree = run_with(method, 0.01);
  CHECK(agree.all.run.launches == 10);
  CHECK(agree.all.probes.size() == 11);
  conclude(agree.all, method);
  CHECK(agree.all.cells[0].stop == "interval");
  Run differ = run_with(method, 0.1);
  CHECK(differ.all.run.launches == kMostLaunches);
  conclude(differ.all, method);
  CHECK(differ.all.cells[0].stop == "launches");
}

TEST_CASE("launching: where there is no time, six launches are made, so that there is an interval", "[colbench]") {
  const Method method{.min_iterations = 1, .max_time = col::Duration(0)};
  Run run = run_with(method, 0.1);
  CHECK(run.all.run.launches == 6);
  conclude(run.all, method);
  CHECK(run.all.cells[0].stop == "time");
  CHECK(statistics_of(run.all.cells[0]).has_interval());
}

TEST_CASE("launching: a number of launches is kept, and below six it is said why there is no interval", "[colbench]") {
  for (const int launches : {1, 5, 6, 50}) {
    const Method method{.launches = launches};
    Run run = run_with(method, 0.001);
    CHECK(run.all.run.launches == launches);
    conclude(run.all, method);
    std::string warnings;
    for (const std::string& warning : run.all.warnings) warnings += warning + "\n";
    CHECK((warnings.find("no interval") != std::string::npos) == (launches < 6));
  }
  Run run = run_with({.launches = 1}, 0, "mpirun");
  conclude(run.all, {.launches = 1});
  REQUIRE(run.all.warnings.size() == 1);
  CHECK(run.all.warnings[0] ==
        "no interval of the median: 1 of the 6 launches that 95 % needs, as the ranks are not colbench's own to start "
        "again");
}

TEST_CASE("launching: the machine is calibrated by ranks that take no samples, spread over the run", "[colbench]") {
  CHECK(run_with({.launches = 20}, 0.1).calibrated_before == std::vector{0, 7, 14});
  CHECK(run_with({.launches = 3}, 0.1).calibrated_before == std::vector{0, 1, 2});
  CHECK(run_with({.launches = 1}, 0.1).calibrated_before == std::vector{0});
  CHECK(run_with({.launches = 20, .calibrate = false}, 0.1).calibrated_before.empty());
}

TEST_CASE("launching: a run ends when a launch has failed, and keeps what there was", "[colbench]") {
  Results all;
  run_launches(
      all, {.calibrate = false}, kCells,
      [&](const col::colbench::Order& order) {
        Results one;
        one.cells.push_back({.spec = kCells[0], .launches = {{.launch = order.launch, .seconds = {1e-3}}}});
        if (order.launch == 2) one.ended_early = "rank 1 died";
        return one;
      },
      &steady);
  CHECK(all.run.launches == 3);
  CHECK(all.cells[0].launches.size() == 3);
  CHECK(all.ended_early == "rank 1 died");
}

TEST_CASE("state: a machine that was slower in the middle of the run is said to be, a single slow probe is not",
          "[colbench]") {
  Results results;
  CHECK(state_text(results).empty());
  results.probes = std::vector<Probe>(11, steady());
  CHECK(state_text(results).empty());
  results.probes[4].copy_seconds *= 3;
  CHECK(state_text(results).empty());
  results.probes[5].copy_seconds *= 2;
  results.probes[6].copy_seconds *= 1.5;
  CHECK(state_text(results) ==
        "the machine changed its state in 2 of 10 launches: a fixed copy was 100 % slower around launch 5 than in the "
        "middle of the run");
  results.probes[6].spin_seconds /= 2.5;
  results.probes[7].spin_seconds /= 3;
  CHECK_THAT(state_text(results), Contains("in 3 of 10") && Contains("a fixed spin was 150 % faster around launch 7"));
}

TEST_CASE("state: a probe takes some milliseconds, and work that can be told from nothing", "[colbench]") {
  const Probe probe = take_probe();
  CHECK(probe.spin_seconds > 1e-6);
  CHECK(probe.copy_seconds > 1e-6);
}

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
  CHECK(progress_line({0, 0, 1, 10, "starting 4 ranks", seconds(5)}, 100, true) ==
        "colbench: launch 2/10, starting 4 ranks …  5 s");
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
  // Every 30 ms of 3 s: each fourth call is 100 ms after the last that drew.
  CHECK(occurrences(text, "colbench:") == 25);
  CHECK(text.find("allreduce 32M ring …  2 s") != std::string::npos);

  {
    Progress later(writer.get(), 80, true, fake_time, seconds(41));  // in another process than what has begun the run
    later.show({});
  }
  text.resize(1 << 16);
  text.resize(static_cast<std::size_t>(::read(reader.get(), text.data(), text.size())));
  CHECK(text == "\rcolbench  41 s\x1b[K\r\x1b[K");

  Progress nothing(-1, 80, true, fake_time);
  nothing.show(kAdvance);
  CHECK(::read(reader.get(), text.data(), text.size()) < 0);
}

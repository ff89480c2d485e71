// What a process keeps of its calls for a timeline, and the file that is made of it.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include <col/job.hpp>
#include <col/trace.hpp>

#include "core/trace/clock_moment.hpp"
#include "core/trace/names.hpp"
#include "core/trace/trace.hpp"
#include "helpers.hpp"
#include "support/catch.hpp"
#include "support/prompt.hpp"
#include "support/temp_dir.hpp"

using col::Collective;
using col::ErrorCode;
using col::Timeline;
using col::core::Names;
using col::core::Trace;
using col::core::TracedCall;
using core_test::check_error;
using nlohmann::json;

namespace {

constexpr std::uint64_t kMuch = std::uint64_t{1} << 30;

TracedCall call_of(Trace& trace, Collective op, std::uint64_t sequence, int rank = 0) {
  TracedCall call{.begin = trace.ticks(), .op = op, .sequence = sequence, .rank = rank};
  call.group = Names::number("default");
  call.details = {.dtype = col::DType::float32, .count = 1000};
  return call;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The slices, by name.
std::multimap<std::string, json> slices_of(const std::string& text) {
  std::multimap<std::string, json> slices;
  const json trace = json::parse(text);
  for (const json& event : trace.at("traceEvents")) {
    if (event["ph"] == "X") slices.emplace(event["name"], event);
  }
  return slices;
}

}  // namespace

TEST_CASE("trace: a name keeps its number", "[trace]") {
  const std::uint16_t one = Names::number("a name of this test");
  CHECK(one != 0);
  CHECK(Names::number("another name of this test") != one);
  CHECK(Names::number("a name of this test") == one);
  CHECK(Names::number("") == 0);
}

TEST_CASE("trace: a call has its name, times, and what it moves", "[trace]") {
  const col::test::TempDir directory;
  const std::string path = directory / "trace.json";
  CHECK_FALSE(col::end_trace(path));  // nothing was started
  CHECK(Trace::on() == nullptr);
  col::start_trace();
  col::start_trace();  // once is enough
  Trace* const trace = Trace::on();
  REQUIRE(trace != nullptr);
  Trace::Cursor cursor;
  TracedCall call = call_of(*trace, Collective::allreduce, 7, 3);
  call.algorithm = Names::number("ring \"quoted\" \xc3\xa9 \xe9");
  call.details.label = Names::number("backward");
  call.details.reduction = 1 + static_cast<int>(col::ReduceOp::max);
  trace->add(cursor, call);
  REQUIRE(col::end_trace(path));
  CHECK(Trace::on() == nullptr);
  const auto slices = slices_of(text_of(path));
  REQUIRE(slices.size() == 1);
  const json& slice = slices.begin()->second;
  CHECK(slice["name"] == "allreduce backward");
  CHECK(slice["pid"] == 3);
  CHECK(slice["dur"] >= 0);
  CHECK(slice["ts"] > 0);
  const json& arguments = slice["args"];
  CHECK(arguments["call"] == 7);
  CHECK(arguments["bytes"] == 4000);
  CHECK(arguments["elements"] == "1000 float32");
  CHECK(arguments["algorithm"] == "ring \"quoted\" \xc3\xa9 ?");
  CHECK(arguments["op"] == "max");
  CHECK(arguments["label"] == "backward");
}

TEST_CASE("trace: of many calls the last ones stay, also of a writer that writes seldom", "[trace]") {
  const col::test::TempDir directory;
  const std::string path = directory / "kept";
  constexpr std::uint64_t kKept = 64, kCalls = 1000;
  Trace::start(kKept, path);
  Trace& trace = *Trace::on();
  Trace::Cursor often, seldom;
  trace.add(seldom, call_of(trace, Collective::barrier, 1));
  for (std::uint64_t i = 1; i <= kCalls; ++i) trace.add(often, call_of(trace, Collective::allreduce, i));
  trace.add(seldom, call_of(trace, Collective::barrier, 2));
  Trace::stop();
  Timeline timeline;
  timeline.add_file(path);
  CHECK(timeline.events() <= kKept);
  const auto slices = slices_of(timeline.json("job", kMuch));
  CHECK(slices.count("barrier") == 1);
  CHECK(slices.find("barrier")->second["args"]["call"] == 2);
  std::uint64_t last = 0;
  for (auto [at, end] = slices.equal_range("allreduce"); at != end; ++at) {
    CHECK(at->second["args"]["call"] > kCalls - kKept);
    last = std::max(last, at->second["args"]["call"].get<std::uint64_t>());
  }
  CHECK(last == kCalls);
}

TEST_CASE("trace: a timeline goes to another host, whose clock is another one", "[trace]") {
  const col::test::TempDir directory;
  const std::string path = directory / "kept";
  Trace::start(64, path);
  Trace::Cursor cursor;
  for (std::uint64_t i = 1; i <= 5; ++i) Trace::on()->add(cursor, call_of(*Trace::on(), Collective::allreduce, i, 1));
  Trace::stop();
  Timeline here, there;
  here.add_file(path);
  there.add_file(path);
  const std::int64_t second = 1'000'000'000;
  there.shift({.first_ahead_ns = -second, .last_ahead_ns = -second, .error_ns = 1500});
  const auto parts = there.pack(150);  // two events in each
  CHECK(parts.size() == 3);
  for (const std::string& part : parts) here.add_packed(part);
  CHECK(here.events() == 10);
  const std::string text = here.json("job", kMuch);
  CHECK(text.find("clock ± 2 µs") != std::string::npos);
  CHECK(json::parse(text)["otherData"]["clock_error_ns"] == "1500");
  double least = 1e18, most = 0;
  for (const auto& [name, slice] : slices_of(text)) {
    least = std::min(least, slice["ts"].get<double>());
    most = std::max(most, slice["ts"].get<double>());
  }
  CHECK(least == 0);
  CHECK(most >= 1e6);
  CHECK(most < 1e6 + 1e6 * col::test::kPromptSeconds);

  for (const std::string& wrong : {std::string("coltrac"), parts[0].substr(0, parts[0].size() - 1), parts[0] + "x"})
    check_error(ErrorCode::mismatch, {"no trace of this release"}, [&] { here.add_packed(wrong); });
  std::ofstream(directory / "other") << std::string(8 << 20, 'x');
  check_error(ErrorCode::mismatch, {"no trace of this release"}, [&] { here.add_file(directory / "other"); });
  check_error(ErrorCode::io, {"cannot read"}, [&] { here.add_file(directory / "none"); });
}

TEST_CASE("trace: two clocks are read at one moment, though the process is suspended between most readings",
          "[trace]") {
  for (int quick = 0; quick < 8; ++quick) {
    std::uint64_t now = 1'000;
    int attempt = 0;
    const auto first = [&] { return now += 1; };
    const auto second = [&] {
      if (attempt != quick) now += 1'000'000;
      const std::uint64_t other = now += 1;
      if (attempt++ != quick) now += 5'000;
      return other + 70;
    };
    const auto [one, other] = core::at_one_moment(first, second);
    CHECK(other - one == 70);
  }
}

TEST_CASE("trace: a clock that drifts", "[trace]") {
  const col::ClockShift clock{.first_at_ns = 1000, .first_ahead_ns = 50, .last_at_ns = 2000, .last_ahead_ns = 70};
  CHECK(clock.ahead_at(1000) == 50);
  CHECK(clock.ahead_at(1500) == 60);
  CHECK(clock.ahead_at(2000) == 70);
  CHECK(clock.ahead_at(500) == 40);
  CHECK(col::ClockShift{.first_at_ns = 5, .first_ahead_ns = 3, .last_at_ns = 5, .last_ahead_ns = 3}.ahead_at(99) == 3);
}

TEST_CASE("trace: a text has no more bytes than it may, and its calls are the last", "[trace]") {
  const col::test::TempDir directory;
  const std::string path = directory / "kept";
  Trace::start(512, path);
  Trace::Cursor cursor;
  for (std::uint64_t i = 1; i <= 500; ++i) Trace::on()->add(cursor, call_of(*Trace::on(), Collective::allreduce, i));
  Trace::stop();
  Timeline timeline;
  timeline.add_file(path);
  // By the byte, over more bytes than a call has: the last bytes count, too.
  for (std::size_t most = 64 * 1024 - 500; most < 64 * 1024; ++most) REQUIRE(timeline.json("job", most).size() <= most);
  const std::string text = timeline.json("job", 64 * 1024);
  const auto slices = slices_of(text);
  CHECK(slices.size() > 50);
  CHECK(slices.size() < 500);
  std::uint64_t least = 500, most = 0;
  for (const auto& [name, slice] : slices) {
    const auto call = slice["args"]["call"].get<std::uint64_t>();
    least = std::min(least, call);
    most = std::max(most, call);
  }
  CHECK(most == 500);
  CHECK(least == 501 - slices.size());
}

TEST_CASE("trace: processes of a job add their parts to one file", "[trace]") {
  const col::test::TempDir directory;
  const std::string path = directory / "trace.json";
  std::ofstream(path) << "what was there before";
  const auto write_part = [&](int rank) {
    Trace::start(64);
    Trace::Cursor cursor;
    Trace::on()->add(cursor, call_of(*Trace::on(), Collective::allreduce, 1, rank));
    col::end_trace(path);
  };
  for (const int rank : {1, 2}) {
    const pid_t child = ::fork();
    if (child == 0) {
      write_part(rank);
      ::_exit(0);
    }
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(status == 0);
  }
  CHECK(slices_of(text_of(path)).size() == 2);
  // This process's next trace is another one than the children's, so that it replaces theirs.
  Trace::next_file_key();
  write_part(0);
  CHECK(slices_of(text_of(path)).size() == 1);
}

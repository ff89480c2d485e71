#include "core/log.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "helpers.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace logging = col::core::log;
using core_test::run_self;

namespace {

constexpr const char* kOneLineOfEach = "log in a process of its own: one line of each level";
constexpr const char* kManyLines = "log in a process of its own: many long lines";
constexpr int kManyCount = 200;

// The label belongs to the process, and other tests read lines.
struct ScopedRank {
  explicit ScopedRank(int rank) { logging::set_rank(rank); }
  ~ScopedRank() { logging::set_rank(-1); }
};

}  // namespace

// The settings are read once per process: these two run in processes that run_self starts.
TEST_CASE("log in a process of its own: one line of each level", "[.child]") {
  logging::warn("a warning");
  logging::info("a number: {}", 7);
  logging::debug("a detail");
}

TEST_CASE("log in a process of its own: many long lines", "[.child]") {
  for (int i = 0; i < kManyCount; ++i) logging::warn("{}", std::string(200, 'x'));
}

TEST_CASE("log: a capture gets the lines up to its level, with label and rank", "[log]") {
  logging::Capture capture(logging::Level::info);
  logging::warn("first {}", 1);
  {
    const ScopedRank rank(3);
    logging::info("second");
  }
  logging::debug("not seen");
  CHECK(capture.text() == "col warn: first 1\ncol[3] info: second\n");
  CHECK(logging::enabled(logging::Level::info));
  CHECK_FALSE(logging::enabled(logging::Level::debug));
}

TEST_CASE("log: captures nest", "[log]") {
  logging::Capture outer(logging::Level::warn);
  {
    logging::Capture inner(logging::Level::debug);
    logging::debug("inside");
    CHECK(inner.text() == "col debug: inside\n");
  }
  logging::debug("not seen");
  logging::warn("outside");
  CHECK(outer.text() == "col warn: outside\n");
}

TEST_CASE("log: a text with line breaks stays one line", "[log]") {
  logging::Capture capture(logging::Level::warn);
  logging::warn("one\ntwo\r\nthree");
  CHECK(capture.text() == "col warn: one two  three\n");
}

TEST_CASE("log: lines of several threads stay whole", "[log]") {
  logging::Capture capture(logging::Level::warn);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 100; ++i) logging::warn("{}", std::string(50, 'y'));
    });
  for (auto& thread : threads) thread.join();
  std::string expected;
  for (int i = 0; i < 400; ++i) expected += "col warn: " + std::string(50, 'y') + "\n";
  CHECK(capture.text() == expected);
}

TEST_CASE("log: COL_LOG chooses the level", "[log]") {
  const std::string warn = "col warn: a warning\n";
  const std::string info = "col info: a number: 7\n";
  const std::string debug = "col debug: a detail\n";
  const auto output = [](std::optional<std::string> level) {
    return run_self(kOneLineOfEach, {{"COL_LOG", std::move(level)}, {"COL_LOG_FILE", std::nullopt}});
  };
  CHECK(output(std::nullopt) == warn);
  CHECK(output("") == warn);
  CHECK(output("off").empty());
  CHECK(output("warn") == warn);
  CHECK(output("info") == warn + info);
  CHECK(output("debug") == warn + info + debug);
}

TEST_CASE("log: an invalid COL_LOG is said once, with the values that work, and acts as warn", "[log]") {
  CHECK(run_self(kOneLineOfEach, {{"COL_LOG", "loud"}, {"COL_LOG_FILE", std::nullopt}}) ==
        "col warn: COL_LOG='loud' is no level; use one of off, warn, info, debug (now: warn)\n"
        "col warn: a warning\n");
}

TEST_CASE("log: COL_LOG_FILE is appended to", "[log]") {
  const col::test::TempDir directory;
  const std::string path = directory / "log";
  core_test::write_file(path, "old line\n");
  CHECK(run_self(kOneLineOfEach, {{"COL_LOG", "info"}, {"COL_LOG_FILE", path}}).empty());
  CHECK(core_test::read_file(path) == "old line\ncol warn: a warning\ncol info: a number: 7\n");
}

TEST_CASE("log: a COL_LOG_FILE that cannot be opened is said, and stderr is used", "[log]") {
  const std::string output =
      run_self(kOneLineOfEach, {{"COL_LOG", std::nullopt}, {"COL_LOG_FILE", "/no/such/directory/log"}});
  CHECK(output.find("COL_LOG_FILE='/no/such/directory/log' cannot be opened") != std::string::npos);
  CHECK(output.find("col warn: a warning\n") != std::string::npos);
}

TEST_CASE("log: lines of several processes in one file stay whole", "[log]") {
  const col::test::TempDir directory;
  const std::string path = directory / "log";
  constexpr int kProcesses = 3;
  {
    std::vector<std::unique_ptr<core_test::Child>> children;
    for (int i = 0; i < kProcesses; ++i) {
      children.push_back(std::make_unique<core_test::Child>([&](core_test::Child&) {
        run_self(kManyLines, {{"COL_LOG", std::nullopt}, {"COL_LOG_FILE", path}});
        return 0;
      }));
    }
    for (auto& child : children) REQUIRE(child->wait() == 0);
  }
  std::string expected;
  for (int i = 0; i < kProcesses * kManyCount; ++i) expected += "col warn: " + std::string(200, 'x') + "\n";
  CHECK(core_test::read_file(path) == expected);
}

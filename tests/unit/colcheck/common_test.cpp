// What colcheck takes from tools/common: children that are asked, texts, files that are written.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "colcheck/options.hpp"
#include "colcheck/report/tally.hpp"
#include "common/ask_child.hpp"
#include "common/guarded.hpp"
#include "common/report.hpp"
#include "common/text.hpp"
#include "common/unique_fd.hpp"
#include "common/write_file.hpp"
#include "results.hpp"
#include "support/catch.hpp"
#include "support/jumping_time.hpp"
#include "support/temp_dir.hpp"

using namespace col::colcheck;
namespace tools = col::tools;
using col::tools::ask_child;
using namespace std::chrono_literals;

namespace {

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::size_t entries(const std::string& directory) {
  const std::filesystem::directory_iterator first(directory);
  return static_cast<std::size_t>(std::distance(begin(first), end(first)));
}

template <class Function>
std::string complaint_of(Function function) {
  try {
    function();
  } catch (const tools::WriteError& error) {
    return error.what();
  }
  return "nothing";
}

std::string path_complaint(const Options& options) {
  try {
    check_report_paths(options);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("ask_child: what the question returns, and nothing of it stays", "[colcheck]") {
  const pid_t self = ::getpid();
  bool asked = false;
  CHECK(ask_child([&] { return asked = true, ::getpid() == self ? "here" : "a child"; }, 20s) == "a child");
  CHECK_FALSE(asked);
  CHECK(ask_child([] { return std::string(); }, 20s) == "");
  CHECK(ask_child([] { return std::string(10'000, 'x'); }, 20s) == std::string(10'000, 'x'));
  CHECK((::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD));
}

TEST_CASE("ask_child: no answer from a child that ends, throws or hangs", "[colcheck]") {
  CHECK_FALSE(ask_child([]() -> std::string { std::_Exit(0); }, 20s));
  CHECK_FALSE(ask_child([]() -> std::string { throw std::runtime_error("no"); }, 20s));
  const col::test::JumpingTime time;
  CHECK_FALSE(ask_child(
      []() -> std::string {
        for (;;) ::pause();
      },
      20s));
  CHECK((::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD));
}

TEST_CASE("text: what a terminal must not get is shown as a number", "[colcheck]") {
  CHECK(tools::clean("a\tb\nc ✔ ü 😀") == "a\tb\nc ✔ ü 😀");
  CHECK(tools::clean("\x1b[31m") == "\\x1b[31m");
  CHECK(tools::clean(std::string("a\0b", 3)) == "a\\x00b");
  CHECK(tools::clean("\x7f\r") == "\\x7f\\x0d");
  CHECK(tools::clean("\xff\xfe") == "\\xff\\xfe");
  CHECK(tools::clean("\xc0\xaf") == "\\xc0\\xaf");           // a '/' in two bytes
  CHECK(tools::clean("\xe0\x80\xaf") == "\\xe0\\x80\\xaf");  // in three
  CHECK(tools::clean("\xe0\x83\xbf") == "\\xe0\\x83\\xbf");
  CHECK(tools::clean("\xf0\x8f\xbf\xbd") == "\\xf0\\x8f\\xbf\\xbd");
  CHECK(tools::clean("\xed\xa0\x80") == "\\xed\\xa0\\x80");           // half of a pair
  CHECK(tools::clean("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");  // beyond the last
  CHECK(tools::clean("\xef\xbf\xbe") == "\\xef\\xbf\\xbe");           // no character of XML
  CHECK(tools::clean("\xc2\x9b") == "\\xc2\\x9b");                    // an escape of one byte to some terminals
  CHECK(tools::clean("\xe2\x9c") == "\\xe2\\x9c");                    // cut off
  CHECK(tools::clean("✔", true) == "\\xe2\\x9c\\x94");
  CHECK(tools::one_line(" a \n\t b\n") == "a b");
  CHECK(tools::one_line("\n").empty());
}

TEST_CASE("text: columns are characters", "[colcheck]") {
  CHECK(tools::columns_of("✔ 12") == 4);
  CHECK(tools::cut("✔✘–", 2) == "✔✘");
  CHECK(tools::cut("✔✘–", 3) == "✔✘–");
  CHECK(tools::cut("✔✘–", 0).empty());
  CHECK(tools::cut("abc", 9) == "abc");
}

TEST_CASE("text: words are wrapped, and what is laid out stays", "[colcheck]") {
  CHECK(tools::wrapped("one two  three", 7) == "one two\nthree");
  CHECK(tools::wrapped("one two", 6) == "one\ntwo");
  CHECK(tools::wrapped("one two", 9, 4, 4) == "one\n    two");
  CHECK(tools::wrapped("\u00e4\u00e4\u00e4 \u00e4\u00e4", 6) == "\u00e4\u00e4\u00e4 \u00e4\u00e4");
  CHECK(tools::wrapped("immeasurable", 3) == "immeasurable");
  CHECK(tools::wrapped("", 3).empty());
  CHECK(tools::reflowed("one\ntwo three\n\nExample:\n  as it is\nmore", 10) ==
        "one two\nthree\n\nExample:\n  as it is\nmore");
  CHECK(tools::reflowed("", 8).empty());
  // A term that stands alone and is too long goes on under its text.
  CHECK(tools::reflowed("about\nUsage: tool [one] [two]\n       tool three\n  four  five six", 17) ==
        "about\nUsage: tool [one]\n       [two]\n       tool three\n  four  five six");
  CHECK(tools::reflowed("  four  five six\n  tool --option x", 13) ==
        "  four  five\n        six\n  tool\n    --option\n    x");
}

TEST_CASE("text: numbers and words", "[colcheck]") {
  CHECK(tools::grouped(0) == "0");
  CHECK(tools::grouped(999) == "999");
  CHECK(tools::grouped(1000) == "1,000");
  CHECK(tools::grouped(1234567) == "1,234,567");
  CHECK(tools::counted(1, "case") == "1 case");
  CHECK(tools::counted(2412, "case") == "2,412 cases");
  CHECK(tools::ranges_text(std::vector{1, 2, 3, 5, 8, 9, 16}) == "1-3, 5, 8-9, 16");
  CHECK(tools::ranges_text({}).empty());
  CHECK(tools::in_words(14.23) == "14.2 s");
  CHECK(tools::in_words(99.96) == "1 min 40 s");
  CHECK(tools::in_words(605) == "10 min 5 s");
  CHECK(tools::shell_quoted("it's") == "'it'\\''s'");
  CHECK(tools::markup("<a b='\"'>&\n\t\x01") == "&lt;a b=&#39;&quot;&#39;&gt;&amp;&#10;&#9;\\x01");
}

TEST_CASE("tables: where there is no room, gaps close, columns go by their turn and are named, texts are cut",
          "[colcheck]") {
  const tools::Part part{.tables = {{.columns = {{"name"}, {"first", false, 2}, {"second", false, 1}, {"verdict"}},
                                     .rows = {{{std::string(20, 'n')}, {"1"}, {"2"}, {"good"}}}}}};
  const auto lines = [&](std::size_t columns) { return tools::lines_of(report_text(part, {.columns = columns}, "")); };
  CHECK(lines(0)[0] == "name                  first  second  verdict");
  CHECK(lines(44) == lines(0));
  CHECK(lines(41)[0] == "name                 first second verdict");
  CHECK(lines(40)[0] == "name                 second verdict");
  CHECK(lines(40).back() == "no room here for first: a wider terminal, or a pipe, has them");
  CHECK(lines(30)[0] == "name                 verdict");
  CHECK(lines(30).back() == "no room here for first, second: a wider terminal, or a pipe, has them");
  CHECK(lines(20)[2] == std::string(9, 'n') + "... good");
  CHECK(lines(3)[2] == std::string(5, 'n') + "... good");  // no less
}

TEST_CASE(
    "tables: numbers stand at the right, and join their units before a column goes; a legend tells of what is there",
    "[colcheck]") {
  tools::Table table{.columns = {{"name"},
                                 {.name = "time", .number = true, .unit = "us", .meaning = "how long"},
                                 {.name = "more", .number = true, .goes = 1, .meaning = "what goes"}},
                     .rows = {{{"one"}, {"1"}, {"2 GB"}}, {{"three"}, {"10"}}},
                     .legend = true};
  const auto text = [](const tools::Table& one, tools::Style style, const char* mark = "") {
    return report_text({.tables = {one}}, style, mark);
  };
  CHECK(text(table, {}) ==
        "name   time, us  more\n---------------------\none           1  2 GB\nthree        10\n"
        "time  how long\nmore  what goes\n");
  CHECK(text(table, {.columns = 18}, "# ") ==
        "name  time, us\n--------------\none          1\nthree       10\n"
        "# time  how long\n# no room here for more: a wider terminal, or a pipe, has them\n");
  table.rows[0][2].text = "2 gigabytes";
  CHECK(text(table, {.columns = 25}).find("2gigabytes\n") != std::string::npos);
}

TEST_CASE("tables: on a terminal no sentence is wider, and what a table holds is harmless", "[colcheck]") {
  const tools::Part part{.title = "a\x1b",
                         .lead = {{"one two three"}},
                         .tables = {{.columns = {{.name = "n", .meaning = "all of\x1b it"}, {"gone", false, 1}},
                                     .rows = {{{"a\n\tb"}, {"\x1b[2J\xff"}}},
                                     .legend = true}}};
  CHECK(report_text(part, {}) ==
        "a\\x1b\n# one two three\nn    gone\n----------------\na b  \\x1b[2J\\xff\n# n     all of\\x1b it\n");
  CHECK(report_text(part, {.columns = 12, .wraps = true}) ==
        "a\\x1b\n# one two\n  three\nn\n---\na b\n# n     all\n        of\\x1b\n        it\n"
        "# no room\n  here for\n  gone: a\n  wider\n  terminal,\n  or a pipe,\n  has them\n");
}

TEST_CASE("guard: each error has its exit code", "[colcheck]") {
  using col::Error, col::ErrorCode;
  namespace exit_code = tools::exit_code;
  constexpr tools::Guard kPlain{.tool = "tool", .failure = 7, .unwritten = 8};
  constexpr tools::Guard kRanks{.tool = "tool", .failure = exit_code::kRankDied, .has_ranks = true};
  const auto code = [](const tools::Guard& guard, const auto& error) {
    return tools::guarded(guard, [&]() -> int { throw error; });
  };
  CHECK(tools::guarded(kPlain, [] { return 3; }) == 3);
  CHECK(code(kPlain, tools::UsageError("of the test")) == exit_code::kUsage);
  CHECK(code(kPlain, tools::ToolError(77, "of the test: {}", 1)) == 77);
  CHECK(code(kPlain, tools::WriteError("of the test")) == 8);
  CHECK(code(kPlain, tools::OutputClosed(ENOSPC, false)) == 8);
  CHECK(code(kPlain, tools::OutputClosed(EPIPE, true)) == exit_code::kOutputClosed);
  CHECK(code(kPlain, std::runtime_error("of the test")) == 7);
  CHECK(code(kPlain, Error(ErrorCode::timeout, "of the test")) == 7);
  CHECK(code(kRanks, Error(ErrorCode::timeout, "of the test")) == exit_code::kRankTimeout);
  CHECK(code(kRanks, Error(ErrorCode::invalid_argument, "of the test")) == exit_code::kUsage);
  CHECK(code(kRanks, Error(ErrorCode::peer_lost, "of the test")) == exit_code::kRankDied);
}

TEST_CASE("facts: ranges of ranks, and nothing about what is not known", "[colcheck]") {
  Results results = empty_run();
  results.host.clear();
  for (const auto& [name, value] : facts_of(results)) {
    CHECK_FALSE(value.empty());
    CHECK(name != "host");
    if (name == "world") CHECK(value == "9 ranks, started by colcheck");
    if (name == "seed") CHECK(value == "0x1f");
  }
}

TEST_CASE("report paths: a look at them changes nothing", "[colcheck]") {
  const col::test::TempDir directory;
  std::ofstream(directory / "old.xml") << "old";
  CHECK(path_complaint({.junit = directory / "old.xml", .json = directory / "new.json", .html = "/dev/null"}) ==
        "nothing");
  CHECK(read(directory / "old.xml") == "old");
  CHECK(entries(directory.path()) == 1);
  CHECK(path_complaint({}) == "nothing");
}

TEST_CASE("report paths: where no file can be is said, with the reason", "[colcheck]") {
  const col::test::TempDir directory;
  std::ofstream(directory / "file") << "x";
  const std::string end = "; name a file that can be written";
  const std::string missing = directory / "none/r.xml";
  CHECK(path_complaint({.junit = missing}) == "--junit: cannot write " + missing + ": No such file or directory" + end);
  CHECK(path_complaint({.json = directory.path()}) ==
        "--json: cannot write " + directory.path() + ": Is a directory" + end);
  const std::string below = directory / "file/r.html";
  CHECK(path_complaint({.html = below}) == "--html: cannot write " + below + ": Not a directory" + end);
  const std::string same = directory / "r";
  CHECK(path_complaint({.junit = same, .html = directory / "./r"}) ==
        "--junit and --html name the same file, " + directory.path() + "/./r; give each its own");
  CHECK(entries(directory.path()) == 1);
}

TEST_CASE("report paths: a directory that takes no files is said", "[colcheck]") {
  const col::test::TempDir directory;
  // Not even root can make files here.
  const std::string path = "/proc/self/report.xml";
  CHECK(path_complaint({.junit = path}).starts_with("--junit: cannot write " + path + ": "));
  if (::geteuid() == 0) return;
  std::ofstream(directory / "old") << "old";
  REQUIRE(::chmod((directory / "old").c_str(), 0400) == 0);
  CHECK(path_complaint({.json = directory / "old"}).find("Permission denied") != std::string::npos);
}

TEST_CASE("write file: replaces what was there, as a whole", "[colcheck]") {
  const col::test::TempDir directory;
  const std::string path = directory / "r";
  const std::string content(1 << 20, 'x');
  tools::write_file(path, "a longer text that must not shine through");
  tools::write_file(path, std::string("a\0b", 3));
  CHECK(read(path) == std::string("a\0b", 3));
  tools::write_file(path, content);
  CHECK(read(path) == content);
  tools::write_file(path, "");
  CHECK(read(path).empty());
  CHECK(entries(directory.path()) == 1);
}

TEST_CASE("write file: a symbolic link stays one", "[colcheck]") {
  const col::test::TempDir directory;
  std::filesystem::create_directory(directory / "d");
  std::filesystem::create_symlink("d/target", directory / "link");
  for (const char* text : {"first", "second"}) {  // the target is made, then replaced
    tools::write_file(directory / "link", text);
    CHECK(std::filesystem::is_symlink(directory / "link"));
    CHECK(read(directory / "d/target") == text);
  }
  CHECK(entries(directory / "d") == 1);
}

TEST_CASE("write file: on failure what was there stays, and nothing else", "[colcheck]") {
  const col::test::TempDir directory;
  CHECK_THROWS_AS(tools::write_file(directory / "none/r", "x"), tools::WriteError);
  CHECK_THROWS_AS(tools::write_file(directory.path(), "x"), tools::WriteError);
  CHECK_THROWS_WITH(tools::write_file("/dev/full", "x"),
                    "cannot write /dev/full: No space left on device; name a file that can be written");
  CHECK(entries(directory.path()) == 0);
}

TEST_CASE("write file: a FIFO is written to, and nobody waits for its reader", "[colcheck]") {
  const col::test::TempDir directory;
  const std::string path = directory / "fifo";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK_NOTHROW(tools::check_writable(path));
  CHECK_THROWS_AS(tools::write_file(path, "x"), tools::WriteError);
  const col::tools::UniqueFd reader(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  REQUIRE(reader);
  tools::write_file(path, "report");
  std::string text(16, '\0');
  REQUIRE(::read(reader.get(), text.data(), text.size()) == 6);
  CHECK(text.starts_with("report"));
  // There is no room for so much where a reader only stays.
  const col::test::JumpingTime time;
  CHECK(complaint_of([&] { tools::write_file(path, std::string(std::size_t{2} << 20, 'x')); }) ==
        "cannot write " + path + ": Connection timed out; name a file that can be written");
}

#include "launch/output/line_tail.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/catch.hpp"

using col::launch::last_lines_of_file;
using col::launch::LineTail;
using Lines = std::vector<std::string>;

namespace {

Lines numbered(int first, int last) {
  Lines lines;
  for (int number = first; number <= last; ++number) lines.push_back(fmt::format("line {}", number));
  return lines;
}

std::string text_of(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

struct File {
  explicit File(const std::string& text) {
    const int fd = ::mkstemp(path.data());
    REQUIRE(fd >= 0);
    REQUIRE(::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    ::close(fd);
  }
  ~File() { ::unlink(path.c_str()); }
  std::string path = "/tmp/col-line-tail-XXXXXX";
};

}  // namespace

TEST_CASE("line tail: the last twenty lines are kept, however the bytes were cut", "[launch]") {
  const std::string text = text_of(numbered(1, 100));
  const std::size_t part = GENERATE(1u, 3u, 64u, 100000u);
  LineTail tail;
  for (std::size_t at = 0; at < text.size(); at += part) tail.feed(std::string_view(text).substr(at, part));
  CHECK(tail.lines() == numbered(81, 100));
  tail.feed("unfinished");
  Lines expected = numbered(82, 100);
  expected.push_back("unfinished");
  CHECK(tail.lines() == expected);
}

TEST_CASE("line tail: a long line is cut, and all of it together is bounded", "[launch]") {
  LineTail tail(3 * LineTail::kLineBytes);
  const std::string text(1 << 20, 'x');
  for (int line = 0; line < 10; ++line) {
    tail.feed(text);
    tail.feed("\n");
  }
  CHECK(tail.lines() == Lines(3, std::string(LineTail::kLineBytes, 'x')));
  tail.feed("short\n");
  CHECK(tail.lines().back() == "short");
}

TEST_CASE("line tail: of a progress bar only what it showed last is kept", "[launch]") {
  LineTail tail;
  tail.feed("start\r\n");
  for (int percent = 0; percent <= 100; ++percent) tail.feed(fmt::format("\r{}%", percent));
  tail.feed("\r");
  tail.feed("error\r");
  tail.feed("\nnext\r\r\nopen\r");
  CHECK(tail.lines() == Lines{"start", "error", "next", "open"});
}

TEST_CASE("line tail: bytes of every value are kept as they are", "[launch]") {
  LineTail tail;
  const std::string bytes("\0\xff\xc3(\x01", 5);
  tail.feed(bytes + "\n");
  CHECK(tail.lines() == Lines{bytes});
}

TEST_CASE("line tail: of a file the end is read, from where this attempt began", "[launch]") {
  const std::string old = "old\n";
  const File small(old + "one\ntwo");
  CHECK(last_lines_of_file(small.path, static_cast<off_t>(old.size())) == Lines{"one", "two"});
  CHECK(last_lines_of_file(small.path, 0) == Lines{"old", "one", "two"});
  CHECK(last_lines_of_file(small.path, 1000).empty());
  const File large(text_of(numbered(1, 50000)));
  CHECK(last_lines_of_file(large.path, 0) == numbered(49981, 50000));
  const File one_line(std::string(1 << 20, 'x') + "\n");
  CHECK(last_lines_of_file(one_line.path, 0) == Lines{std::string(LineTail::kLineBytes, 'x')});
  CHECK(last_lines_of_file("/nowhere/at/all", 0).empty());
}

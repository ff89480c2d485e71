
#include <algorithm>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "launch/output/line_mux.hpp"
#include "support/catch.hpp"
#include "unit/launch/fake_files.hpp"

using col::launch::last_lines_of_file;
using col::launch::LineMux;
using col::launch::LineTail;
using col::launch::Unfinished;
using std::chrono::milliseconds;
using Lines = std::vector<std::string>;

namespace {

// All that has been passed on since the last call.
std::string take(LineMux& mux) {
  const std::string text(mux.pending());
  mux.consume(text.size());
  return text;
}

const LineMux::Time kMuxStart{std::chrono::hours(1)};
constexpr LineMux::Options kOnTerminal{.unfinished = Unfinished::shown};

}  // namespace

TEST_CASE("line mux: lines of two sources that arrive in parts are never mixed", "[launch]") {
  LineMux mux;
  const int a = mux.add_source("");
  const int b = mux.add_source("");
  mux.feed(a, "he", kMuxStart);
  mux.feed(b, "wor", kMuxStart);
  CHECK(take(mux).empty());
  mux.feed(a, "llo\n", kMuxStart);
  CHECK(take(mux) == "hello\n");
  mux.feed(b, "ld\nand more", kMuxStart);
  CHECK(take(mux) == "world\n");
  mux.close(b, kMuxStart);
  CHECK(take(mux) == "and more");
}

TEST_CASE("line mux: a label stands once before every line, however it was cut", "[launch]") {
  LineMux mux;
  const int a = mux.add_source("[3] ");
  mux.feed(a, "one\ntw", kMuxStart);
  mux.feed(a, "o\n\nend", kMuxStart);
  mux.close(a, kMuxStart);
  CHECK(take(mux) == "[3] one\n[3] two\n[3] \n[3] end\n");
}

TEST_CASE("line mux: bytes of every value pass unchanged", "[launch]") {
  LineMux mux;
  const int a = mux.add_source("");
  std::string bytes;
  for (int value = 0; value < 256; ++value) bytes.push_back(static_cast<char>(value));
  mux.feed(a, bytes, kMuxStart);
  mux.close(a, kMuxStart);
  CHECK(take(mux) == bytes);
}

TEST_CASE("line mux: a prompt shows after a silence, and its line goes on after it", "[launch]") {
  LineMux mux(kOnTerminal);
  const int a = mux.add_source("[0] ");
  const int b = mux.add_source("[1] ");
  mux.feed(a, "name? ", kMuxStart);
  REQUIRE(mux.deadline() == kMuxStart + LineMux::kSilence);
  mux.tick(kMuxStart + LineMux::kSilence - milliseconds(1));
  CHECK(take(mux).empty());
  mux.tick(kMuxStart + LineMux::kSilence);
  CHECK(take(mux) == "[0] name? ");
  CHECK_FALSE(mux.deadline());

  // Another's line waits for the end of this one.
  const auto later = kMuxStart + milliseconds(200);
  mux.feed(b, "line\n", later);
  CHECK(take(mux).empty());
  mux.feed(a, "me\n", later + milliseconds(1));
  CHECK(take(mux) == "me\n[1] line\n");
}

TEST_CASE("line mux: a line that stays open does not hold up the others for ever", "[launch]") {
  LineMux mux(kOnTerminal);
  const int a = mux.add_source("");
  const int b = mux.add_source("");
  mux.feed(a, "10%", kMuxStart);
  mux.tick(kMuxStart + LineMux::kSilence);
  const auto waits_since = kMuxStart + milliseconds(100);
  mux.feed(b, "line\n", waits_since);
  REQUIRE(mux.deadline() == waits_since + LineMux::kPatience);
  mux.feed(a, " 20%", waits_since + milliseconds(900));  // going on does not buy more time
  mux.tick(waits_since + LineMux::kPatience);
  CHECK(take(mux) == "10% 20%\nline\n");
}

TEST_CASE("line mux: an unfinished last line is ended only when another line follows", "[launch]") {
  LineMux mux;
  const int a = mux.add_source("");
  const int b = mux.add_source("");
  mux.feed(a, "end", kMuxStart);
  mux.close(a, kMuxStart);
  CHECK(take(mux) == "end");
  mux.feed(b, "line\n", kMuxStart);
  CHECK(take(mux) == "\nline\n");
}

TEST_CASE("line mux: a line longer than any buffer stays whole", "[launch]") {
  LineMux mux;
  const int a = mux.add_source("[0] ");
  const int b = mux.add_source("[1] ");
  const std::string part(LineMux::kMaxHeld, 'x');
  std::string all;
  for (int round = 0; round < 3; ++round) {
    mux.feed(a, part, kMuxStart);
    mux.feed(b, "b\n", kMuxStart);
    all += take(mux);
  }
  mux.feed(a, "\n", kMuxStart);
  all += take(mux);
  CHECK(all == "[0] " + part + part + part + "\n[1] b\n[1] b\n[1] b\n");
}

TEST_CASE("line mux: no source is wanted while the reader is slow", "[launch]") {
  LineMux mux;
  const int a = mux.add_source("");
  const std::string line = std::string(LineMux::kMaxHeld - 1, 'x') + "\n";
  while (mux.wants(a)) mux.feed(a, line, kMuxStart);
  CHECK(mux.pending().size() <= LineMux::kMaxQueued + line.size());
  mux.consume(line.size());
  CHECK(mux.wants(a));
  // A slow reader is no reason to end an open line.
  const int b = mux.add_source("");
  mux.feed(a, std::string(LineMux::kMaxHeld, 'y'), kMuxStart);
  mux.feed(b, "b\n", kMuxStart);
  const std::size_t before = mux.pending().size();
  mux.tick(kMuxStart + LineMux::kPatience);
  CHECK(mux.pending().size() == before);
}

TEST_CASE("line mux: a stamp stands before the label of the lines that begin with these bytes", "[launch]") {
  LineMux mux;
  const int a = mux.add_source("[0] ");
  const int b = mux.add_source("");
  mux.feed(a, "one\ntw", kMuxStart, "T1 ");
  mux.feed(b, "plain", kMuxStart, "T2 ");
  mux.feed(a, "o\nthree\n", kMuxStart, "T3 ");
  CHECK(take(mux) == "T1 [0] one\nT1 [0] two\nT3 [0] three\n");
  mux.close(b, kMuxStart);
  CHECK(take(mux) == "T2 plain\n");
}

TEST_CASE("line mux: a prompt behind another's open line shows after its turn has come", "[launch]") {
  LineMux mux(kOnTerminal);
  const int a = mux.add_source("[0] ");
  const int b = mux.add_source("[1] ");
  mux.feed(a, "10%", kMuxStart);
  mux.tick(kMuxStart + LineMux::kSilence);
  CHECK(take(mux) == "[0] 10%");
  SECTION("when the line is ended") {
    mux.feed(b, "name? ", kMuxStart + LineMux::kSilence);
    mux.feed(a, "\n", kMuxStart + LineMux::kSilence);
    CHECK(take(mux) == "\n");
    REQUIRE(mux.deadline() == kMuxStart + 2 * LineMux::kSilence);
    mux.tick(*mux.deadline());
    CHECK(take(mux) == "[1] name? ");
  }
  SECTION("when the line stays open, and then goes on with its label") {
    mux.feed(b, "name? ", kMuxStart + LineMux::kSilence);
    const auto silent = kMuxStart + 2 * LineMux::kSilence;
    mux.tick(silent);
    CHECK(take(mux).empty());
    REQUIRE(mux.deadline() == silent + LineMux::kPatience);
    mux.tick(*mux.deadline());
    CHECK(take(mux) == "\n[1] name? ");
    mux.feed(b, "me\n", silent + LineMux::kPatience);
    mux.feed(a, "20%\n", silent + LineMux::kPatience);
    CHECK(take(mux) == "me\n[0] 20%\n");
  }
  SECTION("when the owner of the line has ended") {
    mux.close(a, kMuxStart + LineMux::kSilence);
    mux.feed(b, "name? ", kMuxStart + LineMux::kSilence);
    mux.tick(kMuxStart + 2 * LineMux::kSilence);
    CHECK(take(mux) == "\n[1] name? ");
  }
  CHECK(mux.is_drained());
  CHECK_FALSE(mux.deadline());
}

TEST_CASE("line mux: where there is one source only, nothing waits", "[launch]") {
  LineMux mux({.unfinished = Unfinished::passed});
  const int a = mux.add_source("[0] ");
  mux.feed(a, "name", kMuxStart);
  CHECK(take(mux) == "[0] name");
  mux.feed(a, "? \nnext", kMuxStart);
  CHECK(take(mux) == "? \n[0] next");
  CHECK_FALSE(mux.deadline());
  mux.close(a, kMuxStart);
  CHECK(take(mux) == "\n");
}

TEST_CASE("line mux: where there is one source at a time, the next one does not wait for a newline either",
          "[launch]") {
  LineMux mux({.unfinished = Unfinished::passed});
  const int first = mux.add_source("");
  mux.feed(first, "ends here", kMuxStart);
  mux.close(first, kMuxStart);
  CHECK(take(mux) == "ends here");
  const int again = mux.add_source("");
  SECTION("a prompt") {
    mux.feed(again, "name? ", kMuxStart);
    CHECK(take(mux) == "\nname? ");
  }
  SECTION("a prompt after a line") {
    mux.feed(again, "line\nname? ", kMuxStart);
    CHECK(take(mux) == "\nline\nname? ");
  }
  mux.feed(again, "me", kMuxStart);
  CHECK(take(mux) == "me");
  mux.close(again, kMuxStart);
  CHECK(take(mux).empty());
  CHECK_FALSE(mux.deadline());
}

TEST_CASE("line mux: what all sources hold together is bounded, and the open line can still be ended", "[launch]") {
  constexpr std::size_t kLimit = 4 * LineMux::kMaxHeld;
  LineMux mux({.unfinished = Unfinished::shown, .max_held = kLimit});
  const int owner = mux.add_source("");
  std::vector<int> others;
  for (int index = 0; index < 64; ++index) others.push_back(mux.add_source("[x] "));
  mux.feed(owner, "open", kMuxStart);
  mux.tick(kMuxStart + LineMux::kSilence);
  const std::string line = std::string(999, 'x') + "\n";
  std::size_t fed = 0;
  for (int other : others) {
    for (; mux.wants(other); fed += line.size()) mux.feed(other, line, kMuxStart + LineMux::kSilence);
  }
  CHECK(fed < kLimit + line.size());
  CHECK(mux.wants(owner));
  CHECK(mux.pending() == "open");
  mux.feed(owner, "\n", kMuxStart + LineMux::kSilence);
  const std::string all = take(mux);
  CHECK(all.size() == 5 + fed + fed / line.size() * 4);
  CHECK(mux.wants(others.front()));
  CHECK(mux.is_drained());
}

TEST_CASE("line mux: unfinished lines of many sources are whole, and nobody stops another", "[launch]") {
  LineMux mux({.max_held = LineMux::kMaxHeld});
  const std::string part(LineMux::kMaxHeld / 2, 'x');
  std::vector<int> sources;
  for (int index = 0; index < 16; ++index) sources.push_back(mux.add_source(""));
  for (const char* end : {"", "\n"}) {
    for (int source : sources) {
      REQUIRE(mux.wants(source));
      mux.feed(source, part.substr(1) + end, kMuxStart);
      CHECK(take(mux) == (*end == '\0' ? "" : part.substr(1) + part.substr(1) + "\n"));
    }
    CHECK_FALSE(mux.deadline());
  }
}

TEST_CASE("line mux: where no person looks, only a newline ends a line", "[launch]") {
  LineMux mux;
  const int a = mux.add_source("");
  const int b = mux.add_source("");
  LineMux::Time now = kMuxStart;
  for (const char* part : {"AB", "\r10%\r", "CD", "EF\n"}) {
    CHECK(take(mux).empty());
    CHECK_FALSE(mux.deadline());
    for (int source : {a, b}) mux.feed(source, part, now);
    now += 2 * LineMux::kPatience;
    mux.tick(now);
  }
  CHECK(take(mux) == "AB\r10%\rCDEF\nAB\r10%\rCDEF\n");
}

TEST_CASE("line mux: a line that does not end is passed on when it is long, and says where it was cut", "[launch]") {
  LineMux mux;
  const std::string label = GENERATE("", "[0] ");
  const int a = mux.add_source(label);
  const int b = mux.add_source("");
  const std::string long_text(LineMux::kMaxHeld, 'x');
  mux.feed(a, long_text.substr(label.size() + 1), kMuxStart);
  CHECK(take(mux).empty());
  mux.feed(a, "x", kMuxStart);
  CHECK(take(mux) == label + long_text.substr(label.size()));
  mux.feed(b, "line\n", kMuxStart);
  mux.tick(kMuxStart + LineMux::kPatience);
  CHECK(take(mux) == " [line continues]\nline\n");
  SECTION("its rest") {
    mux.feed(a, "re", kMuxStart);
    CHECK(take(mux).empty());
    mux.feed(a, "st\nnext\n", kMuxStart);
    CHECK(take(mux) == label + "[line continued] rest\n" + label + "next\n");
  }
  SECTION("the end of its source, which is no cut") {
    mux.feed(a, long_text, kMuxStart);
    mux.close(a, kMuxStart);
    mux.feed(b, "line\n", kMuxStart);
    CHECK(take(mux) == label + "[line continued] " + long_text + "\nline\n");
  }
  SECTION("the end of its source, with nothing more to say") {
    mux.close(a, kMuxStart);
    mux.feed(b, "line\n", kMuxStart);
    CHECK(take(mux) == "line\n");
  }
}

TEST_CASE("line mux: at the end of a source all of it comes, as a line where others are to follow", "[launch]") {
  const bool ends_lines = GENERATE(false, true);
  LineMux mux({.ends_lines = ends_lines});
  const int a = mux.add_source("");
  mux.feed(a, "text", kMuxStart);
  mux.close(a, kMuxStart);
  CHECK(take(mux) == (ends_lines ? "text\n" : "text"));
}

TEST_CASE("line mux: the number of a forgotten source is used again, once all of it is passed on", "[launch]") {
  LineMux mux(kOnTerminal);
  const int a = mux.add_source("[0] ");
  const int b = mux.add_source("[1] ");
  mux.feed(a, "open", kMuxStart);
  mux.tick(kMuxStart + LineMux::kSilence);
  mux.feed(b, "line\n", kMuxStart + LineMux::kSilence);
  mux.close(b, kMuxStart + LineMux::kSilence);
  mux.forget(b);
  const int c = mux.add_source("[2] ");
  CHECK(c != b);
  mux.feed(a, "\n", kMuxStart + LineMux::kSilence);
  CHECK(take(mux) == "[0] open\n[1] line\n");
  CHECK(mux.add_source("[3] ") == b);
  mux.feed(b, "new\n", kMuxStart);
  mux.feed(c, "too\n", kMuxStart);
  CHECK(take(mux) == "[3] new\n[2] too\n");
}

// Every line is whole, those of one source are in their order, and nothing is lost, whatever comes when.
TEST_CASE("line mux: random pieces of random sources come out as their lines", "[launch]") {
  const unsigned seed = GENERATE(take(20, random(0u, 1u << 30)));
  CAPTURE(seed);
  std::mt19937 random(seed);
  const auto below = [&](std::size_t bound) { return random() % bound; };
  const Unfinished unfinished = below(2) == 0 ? Unfinished::held : Unfinished::shown;
  LineMux mux({.unfinished = unfinished, .max_held = 1 + below(3000)});
  struct Sent {
    std::string text, rest;
    std::vector<std::string> lines;
  };
  std::vector<Sent> sent(1 + below(5));
  for (std::size_t index = 0; index < sent.size(); ++index) {
    mux.add_source(fmt::format("{} ", index));
    for (std::size_t line = below(30); line > 0; --line) {
      // No line may look like an added newline, or the halves of one could not be told from two.
      sent[index].lines.push_back(std::string(1 + below(below(2) == 0 ? 10 : 500), static_cast<char>('a' + index)));
      sent[index].text += sent[index].lines.back() + "\n";
    }
    sent[index].rest = sent[index].text;
  }
  LineMux::Time now = kMuxStart;
  std::string output;
  for (std::size_t open = sent.size(); open > 0;) {
    const std::size_t index = below(sent.size());
    std::string& rest = sent[index].rest;
    if (!rest.empty() && mux.wants(static_cast<int>(index))) {
      const std::size_t length = std::min(rest.size(), 1 + below(700));
      mux.feed(static_cast<int>(index), rest.substr(0, length), now);
      rest.erase(0, length);
      if (rest.empty()) {
        mux.close(static_cast<int>(index), now);
        --open;
      }
    } else if (rest.empty() && sent[index].text.empty()) {
      sent[index].text = "closed";
      mux.close(static_cast<int>(index), now);
      --open;
    }
    if (below(3) == 0) now += milliseconds(below(10));  // never a whole patience: no newline is added
    mux.tick(now);
    const std::size_t taken = below(mux.pending().size() + 1);
    output += mux.pending().substr(0, taken);
    mux.consume(taken);
  }
  output += take(mux);
  std::vector<std::vector<std::string>> got(sent.size());
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t space = line.find(' ');
    REQUIRE(space != std::string::npos);
    got.at(std::stoul(line.substr(0, space))).push_back(line.substr(space + 1));
  }
  for (std::size_t index = 0; index < sent.size(); ++index) CHECK(got[index] == sent[index].lines);
}

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
  const col::test::FakeFiles files;
  const std::string old = "old\n";
  files.write("small", old + "one\ntwo");
  CHECK(last_lines_of_file(files / "small", static_cast<off_t>(old.size())) == Lines{"one", "two"});
  CHECK(last_lines_of_file(files / "small", 0) == Lines{"old", "one", "two"});
  CHECK(last_lines_of_file(files / "small", 1000).empty());
  files.write("large", text_of(numbered(1, 50000)));
  CHECK(last_lines_of_file(files / "large", 0) == numbered(49981, 50000));
  files.write("one_line", std::string(1 << 20, 'x') + "\n");
  CHECK(last_lines_of_file(files / "one_line", 0) == Lines{std::string(LineTail::kLineBytes, 'x')});
  CHECK(last_lines_of_file("/nowhere/at/all", 0).empty());
}

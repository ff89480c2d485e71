#include "launch/line_mux.hpp"

#include <string>

#include "support/catch.hpp"

using col::launch::LineMux;
using std::chrono::milliseconds;

namespace {

// All that has been passed on since the last call.
std::string take(LineMux& mux) {
  const std::string text(mux.pending());
  mux.consume(text.size());
  return text;
}

const LineMux::Time kStart{std::chrono::hours(1)};

}  // namespace

TEST_CASE("line mux: lines of two sources that arrive in parts are never mixed", "[launch]") {
  LineMux mux;
  const int a = mux.add_source("");
  const int b = mux.add_source("");
  mux.feed(a, "he", kStart);
  mux.feed(b, "wor", kStart);
  CHECK(take(mux).empty());
  mux.feed(a, "llo\n", kStart);
  CHECK(take(mux) == "hello\n");
  mux.feed(b, "ld\nand more", kStart);
  CHECK(take(mux) == "world\n");
  mux.close(b, kStart);
  CHECK(take(mux) == "and more");
}

TEST_CASE("line mux: a label stands once before every line, however it was cut", "[launch]") {
  LineMux mux;
  const int a = mux.add_source("[3] ");
  mux.feed(a, "one\ntw", kStart);
  mux.feed(a, "o\n\nend", kStart);
  mux.close(a, kStart);
  CHECK(take(mux) == "[3] one\n[3] two\n[3] \n[3] end\n");
}

TEST_CASE("line mux: bytes of every value pass unchanged", "[launch]") {
  LineMux mux;
  const int a = mux.add_source("");
  std::string bytes;
  for (int value = 0; value < 256; ++value) bytes.push_back(static_cast<char>(value));
  mux.feed(a, bytes, kStart);
  mux.close(a, kStart);
  CHECK(take(mux) == bytes);
}

TEST_CASE("line mux: a prompt shows after a silence, and its line goes on after it", "[launch]") {
  LineMux mux;
  const int a = mux.add_source("[0] ");
  const int b = mux.add_source("[1] ");
  mux.feed(a, "name? ", kStart);
  REQUIRE(mux.deadline() == kStart + LineMux::kSilence);
  mux.tick(kStart + LineMux::kSilence - milliseconds(1));
  CHECK(take(mux).empty());
  mux.tick(kStart + LineMux::kSilence);
  CHECK(take(mux) == "[0] name? ");
  CHECK_FALSE(mux.deadline());

  // Another's line waits for the end of this one.
  const auto later = kStart + milliseconds(200);
  mux.feed(b, "line\n", later);
  CHECK(take(mux).empty());
  mux.feed(a, "me\n", later + milliseconds(1));
  CHECK(take(mux) == "me\n[1] line\n");
}

TEST_CASE("line mux: a line that stays open does not hold up the others for ever", "[launch]") {
  LineMux mux;
  const int a = mux.add_source("");
  const int b = mux.add_source("");
  mux.feed(a, "10%", kStart);
  mux.tick(kStart + LineMux::kSilence);
  const auto waits_since = kStart + milliseconds(100);
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
  mux.feed(a, "end", kStart);
  mux.close(a, kStart);
  CHECK(take(mux) == "end");
  mux.feed(b, "line\n", kStart);
  CHECK(take(mux) == "\nline\n");
}

TEST_CASE("line mux: a line longer than any buffer stays whole", "[launch]") {
  LineMux mux;
  const int a = mux.add_source("[0] ");
  const int b = mux.add_source("[1] ");
  const std::string part(LineMux::kMaxHeld, 'x');
  std::string all;
  for (int round = 0; round < 3; ++round) {
    mux.feed(a, part, kStart);
    mux.feed(b, "b\n", kStart);
    all += take(mux);
  }
  mux.feed(a, "\n", kStart);
  all += take(mux);
  CHECK(all == "[0] " + part + part + part + "\n[1] b\n[1] b\n[1] b\n");
}

TEST_CASE("line mux: no source is wanted while the reader is slow", "[launch]") {
  LineMux mux;
  const int a = mux.add_source("");
  const std::string line = std::string(LineMux::kMaxHeld - 1, 'x') + "\n";
  while (mux.wants(a)) mux.feed(a, line, kStart);
  CHECK(mux.pending().size() <= LineMux::kMaxQueued + line.size());
  mux.consume(line.size());
  CHECK(mux.wants(a));
  // A slow reader is no reason to end an open line.
  const int b = mux.add_source("");
  mux.feed(a, std::string(LineMux::kMaxHeld, 'y'), kStart);
  mux.feed(b, "b\n", kStart);
  const std::size_t before = mux.pending().size();
  mux.tick(kStart + LineMux::kPatience);
  CHECK(mux.pending().size() == before);
}

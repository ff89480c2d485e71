#include "common/text.hpp"

#include <string>

#include "colcheck/report/facts.hpp"
#include "results.hpp"
#include "support/catch.hpp"

using namespace col::colcheck;
namespace tools = col::tools;

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

TEST_CASE("text: numbers and words", "[colcheck]") {
  CHECK(tools::grouped(0) == "0");
  CHECK(tools::grouped(999) == "999");
  CHECK(tools::grouped(1000) == "1,000");
  CHECK(tools::grouped(1234567) == "1,234,567");
  CHECK(tools::counted(1, "case") == "1 case");
  CHECK(tools::counted(2412, "case") == "2,412 cases");
  CHECK(tools::in_words(14.23) == "14.2 s");
  CHECK(tools::in_words(99.96) == "1 min 40 s");
  CHECK(tools::in_words(605) == "10 min 5 s");
  CHECK(tools::shell_quoted("it's") == "'it'\\''s'");
  CHECK(tools::markup("<a b='\"'>&\n\t\x01") == "&lt;a b=&#39;&quot;&#39;&gt;&amp;&#10;&#9;\\x01");
}

TEST_CASE("facts: ranges of ranks, and nothing about what is not known", "[colcheck]") {
  CHECK(ranges({1, 2, 3, 5, 8, 9, 16}) == "1-3, 5, 8-9, 16");
  CHECK(ranges({}).empty());
  Results results = empty_run();
  results.host.clear();
  for (const auto& [name, value] : facts_of(results)) {
    CHECK_FALSE(value.empty());
    CHECK(name != "host");
    if (name == "world") CHECK(value == "9 ranks, started by colcheck");
    if (name == "seed") CHECK(value == "0x1f");
  }
}

#include "colrun/option_values.hpp"

#include <string>
#include <vector>

#include "common/option_values.hpp"
#include "support/catch.hpp"

using namespace col::colrun;
using col::launch::Injection;
using col::launch::Milliseconds;
using col::tools::parse_numbers;

TEST_CASE("option values: times have a unit or are seconds", "[colrun]") {
  CHECK(parse_time("90") == Milliseconds(90'000));
  CHECK(parse_time("90s") == Milliseconds(90'000));
  CHECK(parse_time("500ms") == Milliseconds(500));
  CHECK(parse_time("5m") == Milliseconds(300'000));
  CHECK(parse_time("1h") == Milliseconds(3'600'000));
  CHECK(parse_time("1.5s") == Milliseconds(1'500));
  CHECK(parse_time(".5") == Milliseconds(500));
  CHECK(parse_time("0") == Milliseconds(0));
  CHECK(parse_time("720h") == Milliseconds(2'592'000'000));
  for (const char* text : {"", "s", "ms", "-1", "+1", "1d", "1 s", "1e3", "nan", "1..5", "0x10", "721h", "0.1ms",
                           "99999999999999999999999", "."}) {
    CAPTURE(text);
    CHECK_FALSE(parse_time(text));
  }
}

TEST_CASE("option values: lists of numbers are sorted and have none twice", "[colrun]") {
  CHECK(parse_numbers("0,3-5", 0, 9) == std::vector<int>{0, 3, 4, 5});
  CHECK(parse_numbers("5,1,3-4,4", 0, 9) == std::vector<int>{1, 3, 4, 5});
  CHECK(parse_numbers("9", 0, 9) == std::vector<int>{9});
  for (const char* text : {"", ",", "1,", "5-3", "1-", "-1", "a", "10", "0-10", "1;2", "1 "}) {
    CAPTURE(text);
    CHECK_FALSE(parse_numbers(text, 0, 9));
  }
}

TEST_CASE("option values: processors are listed by rank", "[colrun]") {
  using Lists = std::vector<std::vector<int>>;
  CHECK(parse_processor_lists("0-1;2,4") == Lists{{0, 1}, {2, 4}});
  CHECK(parse_processor_lists("7") == Lists{{7}});
  for (const char* text : {"", ";", "0;", "0-1;;2", "x"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_processor_lists(text));
  }
}

TEST_CASE("option values: a command is divided as a shell does it", "[colrun]") {
  using Texts = std::vector<std::string>;
  CHECK(parse_words("ssh -p 2222") == Texts{"ssh", "-p", "2222"});
  CHECK(parse_words("  gdb\t--args ") == Texts{"gdb", "--args"});
  CHECK(parse_words("a 'b c' \"d 'e\" f\\ g") == Texts{"a", "b c", "d 'e", "f g"});
  CHECK(parse_words("a '' \"\"") == Texts{"a", "", ""});
  CHECK(parse_words("a b'c d'e") == Texts{"a", "bc de"});
  CHECK(parse_words("a \"\\\"\\\\\\n\" '\\'") == Texts{"a", "\"\\\\n", "\\"});
  CHECK(parse_words("a $HOME;b") == Texts{"a", "$HOME;b"});
  for (const char* text : {"", "  ", "'a", "a \"b", "a\\", "'' a"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_words(text));
  }
}

TEST_CASE("option values: an endpoint is a host and a port", "[colrun]") {
  const auto named = col::colrun::parse_endpoint("node0:29400");
  REQUIRE(named);
  CHECK((named->host == "node0" && named->port == 29400 && named->text() == "node0:29400"));
  CHECK(col::colrun::parse_endpoint("node0")->text() == "node0:29400");
  CHECK(col::colrun::parse_endpoint("[fe80::1]")->text() == "[fe80::1]:29400");
  const auto address = col::colrun::parse_endpoint("[fe80::1]:0");
  REQUIRE(address);
  CHECK((address->host == "fe80::1" && address->port == 0 && address->text() == "[fe80::1]:0"));
  for (const char* text : {"", ":1", "node0:", "node0:x", "node0:65536", "node0:-1", "fe80::1:5", "[fe80::1]5",
                           "[fe80::1", "-o:1", "a b:1", "a/b:1", "slots=1:1", "ada@b:1"}) {
    CAPTURE(text);
    CHECK_FALSE(col::colrun::parse_endpoint(text));
  }
}

TEST_CASE("option values: a host may have a user and slots, and is never an option of ssh", "[colrun]") {
  const auto check = [](const char* text, const char* name, std::optional<int> slots) {
    CAPTURE(text);
    const auto host = parse_host(text);
    REQUIRE(host);
    CHECK(host->name == name);
    CHECK(host->slots == slots);
  };
  check("a", "a", std::nullopt);
  check("a:4", "a", 4);
  check("ada@node7.example:4096", "ada@node7.example", 4096);
  check("10.0.0.1", "10.0.0.1", std::nullopt);
  check("[fe80::1]:2", "fe80::1", 2);
  check("ada@[fe80::1%eth0]", "ada@fe80::1%eth0", std::nullopt);
  for (const char* text : {"",     "a:",      "a:0",     "a:4097",  "a:x",       "@a",
                           "a@",   "a@b@c:x", "a@b@c",   "slots=4", "slots=4:2", "-oProxyCommand=x",
                           "x@-y", "-x@y",    "fe80::1", "[a",      "a b",       "a;b",
                           "a'b",  "a\nb"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_host(text));
  }
}

TEST_CASE("option values: faults say what, to whom and when", "[colrun]") {
  const auto kill = parse_injection("kill:3@2s");
  REQUIRE(kill);
  CHECK((kill->kind == Injection::Kind::kill && kill->rank == 3 && kill->at == Milliseconds(2'000)));
  const auto stop = parse_injection("stop:1@1s+5s");
  REQUIRE(stop);
  CHECK((stop->kind == Injection::Kind::stop && stop->rank == 1));
  CHECK((stop->at == Milliseconds(1'000) && stop->duration == Milliseconds(5'000)));
  const auto slow = parse_injection("slow:1x4");
  REQUIRE(slow);
  CHECK((slow->kind == Injection::Kind::slow && slow->rank == 1 && slow->factor == 4));
  CHECK(parse_injection("slow:1x1.5@2s")->at == Milliseconds(2'000));
  CHECK(parse_injection("stop:0")->duration == Milliseconds(0));
  CHECK(parse_injection("kill:0")->at == Milliseconds(0));
  for (const char* text : {"", "kill", "kill:", "kill:x", "kill:-1", "burn:1", "kill:1@", "kill:1@x", "kill:1@1s+2s",
                           "kill:1x4", "slow:1", "slow:1x", "slow:1x1", "slow:1x0.5", "slow:1x1001", "slow:1x4@1s+2s",
                           "stop:1@1s+", "stop:1@1s+0", "stop:1+2s"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_injection(text));
  }
}

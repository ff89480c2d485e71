#include "json/json_fields.hpp"

#include <chrono>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <col/error.hpp>

#include "support/catch.hpp"

using namespace col::core;

namespace sample {

enum class Color { red, green };

std::string_view to_string(Color color) {
  return color == Color::red ? "red" : "green";
}

struct Point {
  int x = 0;
  std::uint8_t y = 0;
};

template <class Visit>
void fields(Point& point, Visit& visit) {
  auto& [x, y] = point;
  visit("x", x, within(-9, 9));
  visit("y", y);
}

struct Everything {
  bool flag = false;
  std::int64_t small = 0;
  std::uint64_t large = 0;
  double real = 0;
  std::string text = {};
  std::chrono::milliseconds duration = {};
  Color color = Color::red, number = Color::red;
  std::optional<double> maybe = {};
  std::vector<Point> points = {};
  std::vector<std::vector<int>> lists = {};
  std::map<Color, std::vector<std::string>> names = {};
  std::pair<int, int> pair = {};
  std::string or_null = {};
  std::uint64_t seed = 0;
  std::string inner = {};
  int newer = 0;
  int local = 0;
};

template <class Visit>
void fields(Everything& all, Visit& visit) {
  auto& [flag, small, large, real, text, duration, color, number, maybe, points, lists, names, pair, or_null, seed,
         inner, newer, local] = all;
  visit("flag", flag);
  visit("small", small);
  visit("large", large);
  visit("real", real, within(-1'000'000, 1'000'000));
  visit("text", text, ShortText{5});
  visit("duration_ms", duration);
  visit("color", color, Named{Color::green, to_string});
  visit("number", number, Numbered{Color::green});
  visit("maybe", maybe);
  visit("points", points, ShortList<>{2});
  visit("lists", lists);
  visit("names", names, Named{Color::green, to_string});
  visit("pair", pair);
  visit("or_null", or_null, TextOrNull());
  visit("seed", seed, Hexadecimal());
  visit.derived("half", [&] { return all.small / 2; });
  visit.object("outer", [&](Visit& outer) { outer("inner", all.inner); });
  visit.optional("newer", newer);
  visit.require(all.newer < 100, "newer", "should be below 100");
  stays(inner, local);
}

}  // namespace sample

namespace {

using sample::Everything;
using Json = nlohmann::ordered_json;

Everything full() {
  return {.flag = true,
          .small = std::numeric_limits<std::int64_t>::min(),
          .large = std::numeric_limits<std::uint64_t>::max(),
          .real = 0.1,
          .text = "caf\xc3\xa9",
          .duration = std::chrono::milliseconds(1500),
          .color = sample::Color::green,
          .number = sample::Color::green,
          .maybe = 2,
          .points = {{1, 255}, {-9, 0}},
          .lists = {{}, {1, 2}},
          .names = {{sample::Color::green, {"a", "b"}}},
          .pair = {3, 4},
          .or_null = "x",
          .seed = 0xfedcba9876543210,
          .inner = "y",
          .newer = 7,
          .local = 8};
}

// What is said of full() with that member replaced, or left out; empty when it is read.
std::string complaint(const std::string& pointer, const std::optional<Json>& value,
                      UnknownMembers unknown = UnknownMembers::refused) {
  Json json = Json::parse(json_line(full()));
  const Json::json_pointer place(pointer);
  if (value)
    json[place] = *value;
  else
    json[place.parent_pointer()].erase(place.back());
  try {
    parsed_json<Everything>(json.dump(), "sample", unknown);
    return {};
  } catch (const col::Error& error) {
    CHECK(error.code() == col::ErrorCode::invalid_argument);
    return error.message();
  }
}

}  // namespace

TEST_CASE("json fields: every kind of value has its form, in the order of the list", "[json]") {
  CHECK(json_line(full()) ==
        R"({"flag":true,"small":-9223372036854775808,"large":18446744073709551615,"real":0.1,"text":"café",)"
        R"("duration_ms":1500,"color":"green","number":1,"maybe":2.0,"points":[{"x":1,"y":255},{"x":-9,"y":0}],)"
        R"("lists":[[],[1,2]],"names":[["green",["a","b"]]],"pair":[3,4],"or_null":"x","seed":"0xfedcba9876543210",)"
        R"("half":-4611686018427387904,"outer":{"inner":"y"},"newer":7})");
  const Json empty = json_of(Everything());
  CHECK(empty["maybe"].is_null());
  CHECK(empty["or_null"].is_null());
  CHECK(json_line(std::string("\xff")) == "\"\xef\xbf\xbd\"");
  CHECK(json_line(std::numeric_limits<double>::infinity()) == "null");
}

TEST_CASE("json fields: what is written is read again, but for what stays", "[json]") {
  for (const Everything& before : {full(), Everything()}) {
    const auto after = parsed_json<Everything>(json_line(before), "sample");
    CHECK(json_line(after) == json_line(before));
    CHECK(after.large == before.large);
    CHECK(after.duration == before.duration);
    CHECK(after.names == before.names);
    CHECK(after.local == 0);
  }
}

TEST_CASE("json fields: a refusal names source, place, and what should be there", "[json]") {
  const Json point = {{"x", 1}, {"y", 2}};
  CHECK(complaint("/flag", 1) == "sample: at /flag: should be true or false, and is a number");
  CHECK(complaint("/small", 1.5).starts_with("sample: at /small: should be a whole number from -9223372036854775808"));
  CHECK(complaint("/large", -1).ends_with("should be a whole number from 0 to 18446744073709551615, and is -1"));
  CHECK(complaint("/points/1/x", 10) == "sample: at /points/1/x: should be a whole number from -9 to 9, and is 10");
  CHECK(complaint("/points/1/y", 256) == "sample: at /points/1/y: should be a whole number from 0 to 255, and is 256");
  CHECK(complaint("/points/0/x", 1ULL << 63).ends_with("and is 9223372036854775808"));
  CHECK(complaint("/points", Json::array({point, point, point})) ==
        "sample: at /points: should have at most 2 values, and has 3");
  CHECK(complaint("/points", 3) == "sample: at /points: should be a list of values, and is a number");
  CHECK(complaint("/real", 1e7) == "sample: at /real: should be a number from -1000000 to 1000000, and is 10000000.0");
  CHECK(complaint("/text", "123456") == "sample: at /text: should have at most 5 bytes, and has 6");
  CHECK(complaint("/color", "blue") == "sample: at /color: should be one of red, green, and is 'blue'");
  CHECK(complaint("/number", 2) == "sample: at /number: should be a whole number from 0 to 1, and is 2");
  CHECK(complaint("/pair", Json::array({1})) == "sample: at /pair: should be a list of two values");
  CHECK(complaint("/names/0/1/0", 1) == "sample: at /names/0/1/0: should be a text, and is a number");
  for (const char* text : {"", "0x", "17", "0x1g", "0x-1", "0x12345678901234567"})
    CHECK(complaint("/seed", text) ==
          "sample: at /seed: should be a hexadecimal number as text, \"0x2a\", and is '" + std::string(text) + "'");
  CHECK(complaint("/newer", 100) == "sample: at /newer: should be below 100");
  CHECK(complaint("/outer", Json::array()) == "sample: at /outer: should be an object, and is a list");
}

TEST_CASE("json fields: members are all there, and no others, but for those that newer writers add", "[json]") {
  const Json whole = json_of(full());
  for (const auto& [name, value] : whole.items()) {
    const bool needed = name != "half" && name != "newer";
    CHECK(complaint("/" + name, std::nullopt) == (needed ? "sample: lacks the member '" + name + "'" : ""));
  }
  CHECK(complaint("/half", "anything").empty());
  CHECK(complaint("/outer/inner", std::nullopt) == "sample: at /outer: lacks the member 'inner'");
  CHECK(complaint("/colour", 1) == "sample: unknown member 'colour'; did you mean 'color'?");
  CHECK(complaint("/outer/other", 1) == "sample: at /outer: unknown member 'other'; known here: inner");
  CHECK(complaint("/points/0/z", 1).starts_with("sample: at /points/0: unknown member 'z'"));
  CHECK(complaint("/colour", 1, UnknownMembers::skipped).empty());
}

#include "launch/nodes/node_messages.hpp"

#include <cstdint>
#include <limits>
#include <string>

#include "launch/report/report_json.hpp"
#include "support/catch.hpp"

using namespace col::launch;
using nlohmann::json;

TEST_CASE("node messages: a member that is missing, or of another type, counts as empty", "[launch]") {
  const json message = {{"text", "a"}, {"number", -7}, {"flag", true}, {"null", nullptr}, {"list", {1}}, {"half", 0.5}};
  CHECK(text_in(message, "text") == "a");
  CHECK(number_in(message, "number") == -7);
  CHECK(flag_in(message, "flag"));
  for (const char* name : {"number", "flag", "null", "list", "half", "missing"}) CHECK(text_in(message, name).empty());
  for (const char* name : {"text", "flag", "null", "list", "half", "missing"}) {
    CHECK(number_in(message, name) == 0);
    CHECK(number_in(message, name, 5) == 5);
  }
  for (const char* name : {"text", "number", "null", "list", "half", "missing"}) CHECK_FALSE(flag_in(message, name));
  for (const json& other : {json(nullptr), json(3), json("text"), json::array({"text"})}) {
    CHECK(text_in(other, "text").empty());
    CHECK(number_in(other, "number", 5) == 5);
    CHECK_FALSE(flag_in(other, "flag"));
  }
}

TEST_CASE("node messages: only numbers of an int's range are numbers", "[launch]") {
  using Int = std::numeric_limits<int>;
  CHECK(number_in({{"n", Int::max()}}, "n") == Int::max());
  CHECK(number_in({{"n", Int::min()}}, "n") == Int::min());
  CHECK(number_in({{"n", std::uint64_t{42}}}, "n") == 42);
  CHECK(number_in({{"n", std::int64_t{Int::max()} + 1}}, "n", 9) == 9);
  CHECK(number_in({{"n", std::int64_t{Int::min()} - 1}}, "n", 9) == 9);
  CHECK(number_in({{"n", std::numeric_limits<std::int64_t>::min()}}, "n", 9) == 9);
  CHECK(number_in({{"n", std::numeric_limits<std::uint64_t>::max()}}, "n", 9) == 9);
}

TEST_CASE("node messages: causes and codes are known by their names", "[launch]") {
  for (int cause = 0; cause <= static_cast<int>(EndCause::launcher_failed); ++cause)
    CHECK(end_cause_from_string(to_string(static_cast<EndCause>(cause))) == static_cast<EndCause>(cause));
  CHECK(end_cause_from_string("nonsense") == EndCause::launcher_failed);
  CHECK(end_cause_from_string("") == EndCause::launcher_failed);
  for (int code = 0; code < 64; ++code) {
    const std::string_view name = col::to_string(static_cast<col::ErrorCode>(code));
    if (error_code_from_string(name)) CHECK(col::to_string(*error_code_from_string(name)) == name);
  }
  CHECK(error_code_from_string("peer_lost") == col::ErrorCode::peer_lost);
  CHECK(error_code_from_string("timeout") == col::ErrorCode::timeout);
  CHECK_FALSE(error_code_from_string("nonsense"));
  CHECK_FALSE(error_code_from_string(""));
}

TEST_CASE("node messages: an IPv6 address stands in brackets in a URL", "[launch]") {
  CHECK(url_host("10.0.0.1") == "10.0.0.1");
  CHECK(url_host("ada.example") == "ada.example");
  CHECK(url_host("fd00::1") == "[fd00::1]");
}

#include "launch/nodes/node_messages.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "launch/report/report_json.hpp"
#include "support/catch.hpp"

using namespace col::launch;
using nlohmann::json;

namespace {

// What is read of a member into a value of that type, which had `before`.
template <class T>
T read(const json& message, const char* name, T before = {}) {
  const MessageReader reader(message);
  reader(name, before);
  return before;
}

}  // namespace

TEST_CASE("node messages: a member that is missing, or of another type, leaves what there was", "[launch]") {
  const json message = {{"text", "a"}, {"number", -7}, {"flag", true}, {"null", nullptr}, {"list", {1}}, {"half", 0.5}};
  CHECK(read<std::string>(message, "text") == "a");
  CHECK(read<int>(message, "number") == -7);
  CHECK(read<std::optional<int>>(message, "number") == -7);
  CHECK(read<bool>(message, "flag"));
  CHECK(read<json>(message, "list") == json({1}));
  for (const char* name : {"number", "flag", "null", "list", "half", "missing"})
    CHECK(read<std::string>(message, name, "b") == "b");
  for (const char* name : {"text", "flag", "null", "list", "half", "missing"}) {
    CHECK(read<int>(message, name, 5) == 5);
    CHECK_FALSE(read<std::optional<int>>(message, name));
  }
  for (const char* name : {"text", "number", "null", "list", "half", "missing"}) {
    CHECK_FALSE(read<bool>(message, name));
    CHECK(read<bool>(message, name, true));
  }
  CHECK(read<json>(message, "missing") == nullptr);
  for (const json& other : {json(nullptr), json(3), json("text"), json::array({"text"})}) {
    CHECK(read<std::string>(other, "text").empty());
    CHECK(read<int>(other, "number", 5) == 5);
    CHECK_FALSE(read<bool>(other, "flag"));
    CHECK(said(other).empty());
  }
}

TEST_CASE("node messages: only numbers of an int's range are numbers", "[launch]") {
  using Int = std::numeric_limits<int>;
  CHECK(read<int>({{"n", Int::max()}}, "n") == Int::max());
  CHECK(read<int>({{"n", Int::min()}}, "n") == Int::min());
  CHECK(read<std::optional<int>>({{"n", Int::min()}}, "n") == Int::min());
  CHECK(read<int>({{"n", std::uint64_t{42}}}, "n") == 42);
  CHECK(read<int>({{"n", std::int64_t{Int::max()} + 1}}, "n", 9) == 9);
  CHECK(read<int>({{"n", std::int64_t{Int::min()} - 1}}, "n", 9) == 9);
  CHECK(read<int>({{"n", std::numeric_limits<std::int64_t>::min()}}, "n", 9) == 9);
  CHECK(read<int>({{"n", std::numeric_limits<std::uint64_t>::max()}}, "n", 9) == 9);
  CHECK(read<int>({{"n", std::numeric_limits<std::uint64_t>::max() - 9}}, "n", 9) == 9);
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

#include <nlohmann/json.hpp>

#include "json/json_text.hpp"
#include "support/catch.hpp"

namespace col::core {
namespace {

TEST_CASE("json text: bytes that are no UTF-8 do not stop it", "[json]") {
  CHECK(json_text(nlohmann::json{{"b", 1}, {"a", "x\xff"}}) == "{\"a\":\"x\xef\xbf\xbd\",\"b\":1}");
  const nlohmann::ordered_json ordered{{"b", 1}, {"a", "x\xff"}};
  CHECK(json_text(ordered) == "{\"b\":1,\"a\":\"x\xef\xbf\xbd\"}");
  CHECK(json_text(ordered, 1) == "{\n \"b\": 1,\n \"a\": \"x\xef\xbf\xbd\"\n}");
}

TEST_CASE("json text: what is no JSON is no object, or an exception", "[json]") {
  CHECK(json_from(R"({"a": [1]})")["a"][0] == 1);
  for (const char* wrong : {"", "{", "{} {}", "nonsense"}) {
    CHECK(json_from(wrong).is_discarded());
    CHECK_FALSE(json_from(wrong).is_object());
    CHECK_THROWS_AS(json_from(wrong, /*throws=*/true), nlohmann::json::parse_error);
  }
}

}  // namespace
}  // namespace col::core

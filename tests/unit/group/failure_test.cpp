#include "group/diagnosis/failure.hpp"

#include <array>

#include "support/catch.hpp"

using col::Error;
using col::ErrorCode;

TEST_CASE("failure: an error survives the store", "[group]") {
  const Error error(ErrorCode::peer_lost, "rank 3 \"went\"\n\xff", "a/b", 3);
  const auto again = col::group::decode_error(col::group::encode_error(error));
  REQUIRE(again);
  CHECK(again->code() == ErrorCode::peer_lost);
  CHECK(again->rank() == 3);
  CHECK(again->group() == "a/b");
  CHECK(again->message().find("rank 3 \"went\"") == 0);
}

TEST_CASE("failure: text of somebody else is no failure of ours", "[group]") {
  for (const char* text : {"", "null", "[]", "{}", R"({"code":"bogus","rank":0,"group":"","message":""})",
                           R"({"code":"io","rank":"x","group":"","message":""})", "{\"code\":\"io\""})
    CHECK_FALSE(col::group::decode_error(text));
}

TEST_CASE("failure: the first one stands", "[group]") {
  const auto store = col::make_memory_store();
  CHECK_FALSE(col::group::published_failure(*store));
  CHECK(col::group::publish_failure(*store, Error(ErrorCode::mismatch, "first")).message() == "first");
  CHECK(col::group::publish_failure(*store, Error(ErrorCode::timeout, "second")).message() == "first");
  CHECK(col::group::published_failure(*store)->code() == ErrorCode::mismatch);
}

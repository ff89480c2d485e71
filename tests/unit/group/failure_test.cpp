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
  for (const bool is_loss : {false, true}) {
    const Error over(ErrorCode::aborted, "epoch 1 is over", "g", -1, -1, is_loss);
    CHECK(col::group::decode_error(col::group::encode_error(over))->is_loss() == is_loss);
  }
}

TEST_CASE("failure: text of somebody else is no failure of ours", "[group]") {
  for (const char* text : {"", "null", "[]", "{}", R"({"code":"bogus","rank":0,"group":"","message":""})",
                           R"({"code":"io","rank":"x","group":"","message":""})", "{\"code\":\"io\""})
    CHECK_FALSE(col::group::decode_error(text));
}

TEST_CASE("failure: the first one stands", "[group]") {
  const auto store = col::make_memory_store();
  CHECK_FALSE(col::group::published_failure(*store, 1));
  CHECK(col::group::publish_failure(*store, Error(ErrorCode::mismatch, "first"), 0).message() == "first");
  CHECK(col::group::publish_failure(*store, Error(ErrorCode::timeout, "second"), 1).message() == "first");
  CHECK(col::group::published_failure(*store, 1)->code() == ErrorCode::mismatch);
}

TEST_CASE("failure: no rank is told that it is lost itself, and its own error takes the place of that", "[group]") {
  const auto store = col::make_memory_store();
  const Error lost(ErrorCode::peer_lost, "lost the connection to rank 0", "g", 0);
  CHECK(col::group::publish_failure(*store, lost, 2).rank() == 0);
  CHECK(col::group::published_failure(*store, 1)->rank() == 0);
  const auto read = col::group::published_failure(*store, 0);
  REQUIRE(read);
  CHECK(read->code() == ErrorCode::aborted);
  CHECK(read->rank() == -1);
  CHECK(read->message().find("others have taken this rank, 0, for lost") == 0);
  // The words that it was told are for it alone.
  CHECK(col::group::publish_failure(*store, *read, 0).code() == ErrorCode::aborted);
  CHECK(col::group::published_failure(*store, 1)->rank() == 0);
  CHECK(col::group::publish_failure(*store, Error(ErrorCode::mismatch, "its own"), 0).message() == "its own");
  CHECK(col::group::published_failure(*store, 1)->message() == "its own");
  CHECK(col::group::publish_failure(*store, lost, 2).message() == "its own");
}

#include <string>
#include <type_traits>

#include <col/error.hpp>

#include "helpers.hpp"
#include "support/catch.hpp"

TEST_CASE("error: what() is code, group and message in one line", "[error]") {
  const col::Error plain(col::ErrorCode::io, "disk on fire");
  CHECK(std::string(plain.what()) == "io: disk on fire");
  CHECK(plain.rank() == -1);
  CHECK(plain.group().empty());

  const col::Error grouped(col::ErrorCode::peer_lost, "rank 3 died", "left half", 3);
  CHECK(std::string(grouped.what()) == "peer_lost: group 'left half': rank 3 died");
  CHECK(grouped.message() == "rank 3 died");
  CHECK(grouped.group() == "left half");
  CHECK(grouped.rank() == 3);

  const col::Error foreign(col::ErrorCode::internal, "line one\r\nline two\n");
  CHECK(foreign.message() == "line one  line two");
}

TEST_CASE("error: a copy is the same and does not throw", "[error]") {
  STATIC_REQUIRE(std::is_nothrow_copy_constructible_v<col::Error>);
  STATIC_REQUIRE(std::is_nothrow_copy_assignable_v<col::Error>);
  const col::Error original(col::ErrorCode::mismatch, std::string(1000, 'x'), "g", 7);
  col::Error copy(col::ErrorCode::io, "other");
  copy = original;
  CHECK(std::string(copy.what()) == original.what());
  CHECK(copy.code() == col::ErrorCode::mismatch);
  CHECK(copy.group() == "g");
  CHECK(copy.rank() == 7);
}

TEST_CASE("error: a loss is peer_lost, or an aborted that says so", "[error]") {
  CHECK(col::Error(col::ErrorCode::peer_lost, "rank 3 died").is_loss());
  CHECK_FALSE(col::Error(col::ErrorCode::aborted, "interrupted").is_loss());
  CHECK(col::Error(col::ErrorCode::aborted, "epoch 0 is over", "g", -1, -1, true).is_loss());
  CHECK_FALSE(col::Error(col::ErrorCode::timeout, "late", "g", -1, -1, true).is_loss());
}

TEST_CASE("error: docs/errors.md explains every code", "[error][docs]") {
  const std::string page = core_test::read_file(COL_SOURCE_DIR "/docs/errors.md");
  int codes = 0;
  for (int i = 0;; ++i, ++codes) {
    const auto name = to_string(static_cast<col::ErrorCode>(i));
    if (name == "?") break;
    INFO(name);
    CHECK(page.find("## `" + std::string(name) + "`\n") != std::string::npos);
  }
  CHECK(codes == 11);
}

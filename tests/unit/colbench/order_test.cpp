#include "colbench/rank/player.hpp"
#include "common/command_line.hpp"
#include "support/catch.hpp"

using namespace col::colbench;

TEST_CASE("order: crosses as text and is the same afterwards", "[colbench]") {
  Order order{.method = {.ranks = 5, .launches = 7, .seed = 0xffff'ffff'ffffU, .skew = "late:1:20", .fits = {"shm"}},
              .launch = 3,
              .calibrations = 5};
  order.cells.push_back(
      {.operation = Operation::scan, .backend = "gloo", .algorithm = "knomial:radix=8", .bytes = 12, .ranks = 5});
  order.cells.push_back({.operation = Operation::pingpong, .bytes = 8, .ranks = 5, .pair = std::pair(2, 4)});
  const Order back = decode_order(encode(order));
  CHECK(back.cells == order.cells);
  CHECK(back.launch == 3);
  CHECK(back.calibrations == 5);
  CHECK(back.method.ranks == 5);
  CHECK(back.method.launches == 7);
  CHECK(back.method.seed == order.method.seed);
  CHECK(back.method.skew == order.method.skew);
  CHECK(back.method.fits == order.method.fits);
  CHECK_THROWS_AS(decode_order("{}"), col::tools::UsageError);
}

TEST_CASE("answer: crosses as bytes, and is refused when cut short", "[colbench]") {
  Answer answer{
      .trouble = "x", .code = col::ErrorCode::timeout, .operations = 4, .began = {1e-6}, .ended = {2e-6, 3e-6}};
  answer.check = {.mode = "all", .elements = 9, .wrong = 2, .first = "here"};
  const std::string bytes = encode(answer);
  const Answer back = decode_answer(bytes);
  CHECK(back.trouble == "x");
  CHECK(back.code == col::ErrorCode::timeout);
  CHECK(back.ended == answer.ended);
  CHECK(back.check.first == "here");
  for (std::size_t size = 0; size < bytes.size(); ++size) CHECK_THROWS(decode_answer(bytes.substr(0, size)));
}

TEST_CASE("placement: who is in which group, and where", "[colbench]") {
  CHECK(placement_of("", 3, 8).size == 8);
  CHECK(placement_of("mod:2", 5, 8).group == 1);
  CHECK(placement_of("mod:2", 5, 8).rank == 2);
  CHECK(placement_of("mod:2", 5, 8).size == 4);
  CHECK(placement_of("div:4", 6, 8).group == 1);
  CHECK(placement_of("div:4", 6, 8).rank == 2);
  CHECK(placement_of("pairs", 8, 9).size == 1);
  CHECK(placement_of("bisect", 4, 9).group == 1);
  CHECK(placement_of("bisect", 4, 9).size == 5);
}

#include "launch/job/rank_pattern.hpp"

#include "support/catch.hpp"

using col::launch::expand_pattern;
using col::launch::RankNames;
using col::launch::why_no_pattern;

TEST_CASE("rank pattern: every letter stands for its part of the rank", "[launch]") {
  const RankNames names{
      .rank = 7, .local_rank = 3, .node_rank = 1, .world_size = 128, .host = "node1", .job_id = "j5", .restart = 2};
  CHECK(expand_pattern("%r %l %n %w %h %j %g %s", names, "err") == "7 3 1 128 node1 j5 2 err");
  CHECK(expand_pattern("run/%h/%R.%s", names, "out") == "run/node1/007.out");
  CHECK(expand_pattern("100%% of %%r", names) == "100% of %r");
  CHECK(expand_pattern("", names).empty());
  CHECK(expand_pattern("%s", names).empty());
}

TEST_CASE("rank pattern: the zeros of %R are those of the highest rank, not of the number of ranks", "[launch]") {
  CHECK(expand_pattern("%R", {.rank = 0, .world_size = 1}) == "0");
  CHECK(expand_pattern("%R", {.rank = 3, .world_size = 10}) == "3");
  CHECK(expand_pattern("%R", {.rank = 3, .world_size = 11}) == "03");
  CHECK(expand_pattern("%R", {.rank = 999, .world_size = 1000}) == "999");
}

TEST_CASE("rank pattern: a host's name is not expanded again", "[launch]") {
  CHECK(expand_pattern("%h%r", {.rank = 4, .host = "a%r%"}) == "a%r%4");
}

TEST_CASE("rank pattern: what is none is refused with the reason", "[launch]") {
  CHECK_FALSE(why_no_pattern("[%r] "));
  CHECK_FALSE(why_no_pattern("%r%R%l%n%w%h%j%g%s%%"));
  CHECK_FALSE(why_no_pattern("%%q"));
  REQUIRE(why_no_pattern("%q/%r"));
  CHECK(why_no_pattern("%q/%r")->starts_with("%q is not known; there are %r (rank), "));
  CHECK(why_no_pattern("%r%") == "it ends with a single %; write %% for a percent sign");
}

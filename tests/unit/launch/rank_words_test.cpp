#include "launch/report/rank_words.hpp"

#include <cstdint>

#include "support/catch.hpp"

using namespace col::launch;

TEST_CASE("rank words: rank lists are short", "[launch]") {
  CHECK(name_ranks({5}) == "rank 5");
  CHECK(name_ranks({0, 1, 2, 3}) == "ranks 0-3");
  CHECK(name_ranks({0, 2, 3, 9}) == "ranks 0, 2-3, 9");
}

TEST_CASE("rank words: sizes have three digits", "[launch]") {
  CHECK(describe_bytes(0) == "0 KiB");
  CHECK(describe_bytes(96 << 10) == "96 KiB");
  CHECK(describe_bytes(1'048'064) == "1.0 MiB");
  CHECK(describe_bytes(812ULL << 20) == "812 MiB");
  CHECK(describe_bytes(3ULL << 50) == "3072 TiB");
}

TEST_CASE("rank words: the label of a brief call is the recorder's, also where others have followed", "[launch]") {
  RankStory rank;
  rank.last = col::RankActivity{};
  rank.last->group = "default";
  rank.last->sequence = 12;
  const auto record = [&](std::uint64_t sequence, const char* label, const char* group = "default") {
    rank.history.calls.push_back(
        {.group = group, .sequence = sequence, .names = {.reduction = {}, .algorithm = {}, .label = label}});
  };
  CHECK(label_of(rank).empty());
  record(11, "before");
  record(12, "of another group", "data");
  CHECK(label_of(rank).empty());
  record(12, "forward");
  record(13, "backward");
  CHECK(label_of(rank) == "forward");
  // So many have followed that the call itself is gone.
  rank.last->sequence = 10;
  CHECK(label_of(rank) == "before");
  rank.last->names.label = "its own";
  CHECK(label_of(rank) == "its own");
}

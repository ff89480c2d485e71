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

TEST_CASE("rank words: of ranks that go on in epochs, a failure in the last one counts", "[launch]") {
  const auto one = [](int rank, int code, std::uint64_t epoch, double end) {
    RankStory story;
    story.rank = rank;
    story.epoch = epoch;
    story.status = {.wait_status = code << 8, .seconds = end, .exited = true};
    return story;
  };
  std::vector<RankStory> ranks{one(0, 5, 2, 4), one(1, 9, 1, 1), one(2, 7, 2, 3), one(3, 0, 2, 4)};
  ranks.push_back(one(4, 8, 2, 1));
  ranks.back().is_spare = true;
  ranks.push_back(one(5, 6, 2, 2));
  ranks.back().status.collateral = true;
  ranks.push_back(one(6, 3, 2, 1));
  ranks.back().status.told_to_end = true;
  const auto counts = [&](ExitPolicy policy) {
    const auto* const found = failure_that_counts(ranks, policy);
    return found == nullptr ? -1 : found->rank;
  };
  CHECK(counts(ExitPolicy::first) == 2);
  CHECK(counts(ExitPolicy::max) == 2);
  CHECK(counts(ExitPolicy::rank0) == 0);
  ranks[0].status.wait_status = 8 << 8;
  CHECK(counts(ExitPolicy::max) == 0);
  ranks[0].status.wait_status = ranks[2].status.wait_status = 0;
  CHECK(counts(ExitPolicy::first) == 5);  // nobody else has failed
  ranks[5].status.wait_status = 0;
  CHECK(counts(ExitPolicy::first) == -1);
}

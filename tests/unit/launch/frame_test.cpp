// The picture that coljob top shows.
#include "launch/top/frame.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "common/text.hpp"
#include "support/catch.hpp"
#include "unit/launch/joined_ranks.hpp"

using namespace col::launch;
using col::RankActivity;
using State = RankActivity::State;

namespace {

JobStory job(int ranks) {
  JobStory story = joined_ranks(ranks, 4000, "data_parallel", "allreduce", 123'456);
  story.job_id = "20261126-144108-6812-3c1eeb48";
  story.command_line = {"/home/ada/my_trainer", "--epochs", "90"};
  story.seconds = 12.3;
  return story;
}

std::vector<RankRates> rates(std::size_t ranks) {
  std::vector<RankRates> rates(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    rates[rank] = {.calls = 12'345.0 + static_cast<double>(rank),
                   .waiting = 0.25,
                   .bytes = 1.5e9,
                   .cpu = 0.98,
                   .queued = 0.02,
                   .rss_bytes = std::uint64_t{340} << 20};
  }
  return rates;
}

// All but `away` wait in the next call.
void wait_for(JobStory& story, std::size_t away) {
  for (std::size_t rank = 0; rank < story.ranks.size(); ++rank) {
    if (rank == away) continue;
    RankActivity& last = *story.ranks[rank].last;
    last.state = State::waiting;
    ++last.sequence;
  }
}

std::vector<std::string> frame_of(const JobStory& story, FrameOptions options) {
  return draw_frame(story, why(story), rates(story.ranks.size()), options);
}

bool has(const std::vector<std::string>& lines, std::string_view text) {
  return std::ranges::any_of(lines, [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

}  // namespace

TEST_CASE("frame: fits the terminal, whatever its size", "[launch]") {
  for (const int ranks : {1, 3, 40, 512}) {
    JobStory story = job(ranks);
    if (ranks > 1) wait_for(story, 1);
    for (const std::size_t columns : {1, 20, 40, 80, 100, 160, 300}) {
      for (const std::size_t lines : {1, 3, 6, 24, 50}) {
        CAPTURE(ranks, columns, lines);
        const auto frame = frame_of(story, {.columns = columns, .lines = lines});
        CHECK(frame.size() == lines);
        const bool fits = std::ranges::all_of(
            frame, [&](const std::string& line) { return col::tools::columns_of(line) <= columns; });
        CHECK(fits);
      }
    }
  }
}

TEST_CASE("frame: what there is room for", "[launch]") {
  const auto narrow = frame_of(job(3), {.columns = 80, .lines = 24});
  CHECK(narrow[0] == "20261126-144108-6812-3c1eeb48  3 ranks  12.3 s  3 computing  my_trainer --epochs");
  for (const char* title : {"rank", "state", "call", "calls/s", "wait", "data/s", "RSS", "CPU"})
    CHECK(has(narrow, title));
  CHECK(has(narrow, "computing"));
  CHECK(has(narrow, "12.3k"));
  CHECK(has(narrow, "25%"));
  CHECK(has(narrow, "1.4G"));
  CHECK(has(narrow, "340M"));
  CHECK(has(narrow, "98%"));
  CHECK_FALSE(has(narrow, "GPU"));
  CHECK(narrow.back().starts_with("s sort: interest   k stacks   p pause   d dump   q quit"));
  const auto wide = frame_of(job(3), {.columns = 160, .lines = 24});
  for (const char* title : {"pid", "since", "group", "queued"}) CHECK(has(wide, title));
  CHECK(has(wide, "(allreduce #123456)"));
  CHECK(has(wide, "data_parallel"));
  CHECK(has(wide, "4002"));

  JobStory story = job(1);
  std::vector<RankRates> with_gpu = rates(1);
  with_gpu[0].gpu = GpuUse{std::uint64_t{3} << 30, 87};
  const auto gpu = draw_frame(story, why(story), with_gpu, {.columns = 160});
  CHECK(has(gpu, "87%"));
  CHECK(has(gpu, "3.0G"));
}

TEST_CASE("frame: says who is waited for, and folds the many", "[launch]") {
  JobStory story = job(512);
  wait_for(story, 300);
  const auto frame = frame_of(story, {.columns = 80, .lines = 24});
  CHECK(frame[1].starts_with("ranks 0-299, 301-511 have waited for 14.0 s in allreduce #123457"));
  const auto head = std::ranges::find_if(frame, [](const std::string& line) { return line.starts_with("rank"); });
  const auto table = std::ranges::find_if(frame, [](const std::string& line) { return line.starts_with("---"); });
  REQUIRE(table != frame.end());
  REQUIRE(head != frame.end());
  // The one that the others wait for comes first.
  CHECK((table + 1)->starts_with(" 300  computing"));
  CHECK(has(frame, " more: "));
  CHECK(has(frame, " waiting"));
  // By number, it is not among those that are shown.
  const auto by_rank = frame_of(story, {.columns = 80, .lines = 24, .sort = SortBy::rank});
  CHECK(has(by_rank, "   0  waiting"));
  CHECK_FALSE(has(by_rank, " 300  computing"));
  CHECK(has(by_rank, "1 computing"));
  // All of them, for a file.
  CHECK(frame_of(story, {.columns = 160, .lines = 0}).size() >= 512 + 3);
}

TEST_CASE("frame: the order of ranks", "[launch]") {
  JobStory story = job(3);
  std::vector<RankRates> all(3);
  all[0] = {.calls = 5, .waiting = 0.1, .cpu = 0.3, .rss_bytes = 7};
  all[1] = {.calls = 9, .waiting = 0.3, .cpu = 0.1, .rss_bytes = 9};
  all[2] = {.calls = 1, .waiting = 0.2, .cpu = 0.2, .rss_bytes = 8};
  const WaitGraph graph(story);
  const Why found = why(story);
  const auto by = [&](SortBy sort) { return order_of_ranks(graph, found, all, sort, true); };
  using Order = std::vector<std::size_t>;
  CHECK(by(SortBy::interest) == Order{0, 1, 2});
  CHECK(by(SortBy::rank) == Order{0, 1, 2});
  CHECK(by(SortBy::calls) == Order{1, 0, 2});
  CHECK(by(SortBy::waiting) == Order{1, 2, 0});
  CHECK(by(SortBy::cpu) == Order{0, 2, 1});
  CHECK(by(SortBy::memory) == Order{1, 2, 0});
  // Of those that have no room, the one that waits least is looked at first.
  CHECK(order_of_ranks(graph, found, all, SortBy::interest, false) == Order{0, 2, 1});
  SortBy sort = SortBy::interest;
  for (int i = 0; i < 6; ++i) sort = next(sort);
  CHECK(sort == SortBy::interest);
}

TEST_CASE("frame: keys, a note, and a pause", "[launch]") {
  CHECK(frame_of(job(2), {.paused = true}).back().starts_with("paused   s sort"));
  CHECK(frame_of(job(2), {.note = "wrote f.json"}).back() == "wrote f.json");
}

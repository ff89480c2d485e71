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
  CHECK((table + 1)->starts_with(" 300 computing"));
  CHECK(has(frame, " more: "));
  CHECK(has(frame, " waiting"));
  // By number, it is not among those that are shown.
  const auto by_rank = frame_of(story, {.columns = 80, .lines = 24, .sort = SortBy::rank});
  CHECK(has(by_rank, "   0 waiting"));
  CHECK_FALSE(has(by_rank, " 300 computing"));
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

TEST_CASE("frame: of several hosts, the ranks of one that does not answer are marked", "[launch]") {
  JobStory story = job(4);
  story.nodes = 2;
  for (RankStory& rank : story.ranks) rank.host = rank.rank < 2 ? "n1.cluster.example" : "a-name-that-is-long";
  std::vector<RankRates> all = rates(4);
  all[2].age = all[3].age = 3.2;
  story.ranks[3].last->state = State::waiting;
  FrameOptions options{
      .columns = 160, .lines = 24, .notices = {"host n2 (node 1, ranks 2-3) has not answered for 3.2 s"}};
  const auto frame = draw_frame(story, Why(), all, options);
  CHECK(frame[0].find("  4 ranks on 2 hosts  12.3 s  2 computing, 2 no answer  ") != std::string::npos);
  CHECK(frame[1] == options.notices[0]);
  CHECK(frame[2].starts_with("rank  host "));
  CHECK(frame[4].starts_with("   0  n1            4000  computing"));
  CHECK(frame[7].starts_with("   3  a-name-th...  4003  no answer   3.2 s"));
  // What it does now is not known.
  CHECK(frame[7].find("(allreduce #123456)") != std::string::npos);
  // More hosts than there is room for.
  options.notices.assign(9, "host");
  CHECK(draw_frame(story, Why(), all, options)[4].starts_with("rank"));
  options.lines = 0;
  CHECK(draw_frame(story, Why(), all, options)[10].starts_with("rank"));
  // Those come early in which something is wrong.
  options.lines = 10;
  options.notices.clear();
  story = job(40);
  story.nodes = 2;
  all = rates(40);
  all[39].age = 2;
  CHECK(has(draw_frame(story, Why(), all, options), "  39 "));
}

TEST_CASE("frame: what the calls are for", "[launch]") {
  JobStory story = job(2);
  CHECK_FALSE(has(frame_of(story, {.columns = 160}), "label"));
  story.ranks[0].last->names.label = "backward";
  // A brief call has it in the recorder.
  story.ranks[1].history.calls.push_back(
      {.group = "data_parallel", .sequence = 123'456, .names = {.reduction = {}, .algorithm = {}, .label = "forward"}});
  for (const std::size_t columns : {90, 160}) {
    const auto frame = frame_of(story, {.columns = columns});
    CHECK(has(frame, "backward"));
    CHECK(has(frame, "forward"));
  }
}

TEST_CASE("rates: of what has been used between two looks", "[launch]") {
  RateMeter meter;
  RankStory rank;
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const auto rates_at = [&](std::uint64_t at, RankUse use) {
    use.at_ns = at;
    rank.use = use;
    return meter.rates_of(rank, false);
  };
  const RankUse begin{.calls = 100, .bytes = 1000, .waited = 3, .cpu = 5, .queued = 1, .rss_bytes = 7};
  const RankRates first = rates_at(kSecond, begin);
  CHECK_FALSE(first.calls);
  CHECK_FALSE(first.cpu);
  CHECK(first.rss_bytes == 7);
  const RankUse later{.calls = 150, .bytes = 5000, .waited = 3.1, .cpu = 5.4, .queued = 1.2, .rss_bytes = 9};
  const RankRates second = rates_at(kSecond + kSecond / 2, later);
  CHECK(second.calls.value() == 100);
  CHECK(second.bytes.value() == 8000);
  CHECK(second.waiting.value() == Catch::Approx(0.2));
  CHECK(second.cpu.value() == Catch::Approx(0.8));
  CHECK(second.queued.value() == Catch::Approx(0.4));
  CHECK(second.rss_bytes == 9);
  // So soon, they are those that were: the same answer may be looked at twice.
  CHECK(rates_at(kSecond + kSecond / 2, later).calls == second.calls);
  // Its process has ended, and nobody knows its calls.
  const RankRates ended = rates_at(2 * kSecond, {});
  CHECK_FALSE(ended.calls);
  CHECK_FALSE(ended.cpu);
  CHECK_FALSE(ended.rss_bytes);
  // Another clock.
  CHECK_FALSE(rates_at(kSecond / 2, later).calls);
  rank.use.reset();
  CHECK_FALSE(meter.rates_of(rank, false).rss_bytes);
}

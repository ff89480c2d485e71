// In which stage a job is, and what ends it: all of it with times that the test says.
#include "launch/supervise/job_life.hpp"

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "common/exit_codes.hpp"
#include "support/catch.hpp"

using namespace col::launch;
using std::chrono::milliseconds;
using Stage = JobLife::Stage;
using Facts = JobLife::Facts;

namespace {

const JobLife::Time kEntered{std::chrono::hours(1)};
constexpr milliseconds kOneMs{1};

struct StageRow {
  Stage stage;
  Facts lasting;                          // while this is so, and nothing else happens
  std::vector<bool Facts::*> needs;       // the stage ends when all of these are over
  std::vector<bool Facts::*> ends_at;     // or when one of these begins
  std::optional<milliseconds> time = {};  // or then
  bool ends_with_front = false;           // or when the process that the user has started is gone
};

const std::vector<StageRow> kStageRows = {
    {.stage = Stage::running, .lasting = {.ranks_live = true}, .needs = {&Facts::ranks_live}, .ends_at = {}},
    {.stage = Stage::draining,
     .lasting = {.pipes_open = true},
     .needs = {&Facts::pipes_open},
     .ends_at = {&Facts::interrupted},
     .time = milliseconds(500),
     .ends_with_front = true},
    {.stage = Stage::writing,
     .lasting = {.pipes_open = true, .unwritten = true},
     .needs = {&Facts::pipes_open, &Facts::unwritten},
     .ends_at = {},
     .ends_with_front = true},
    {.stage = Stage::awaiting,
     .lasting = {.no_news = true},
     .needs = {&Facts::no_news},
     .ends_at = {},
     .ends_with_front = true},
    {.stage = Stage::parting,
     .lasting = {.serves = true},
     .needs = {&Facts::serves},
     .ends_at = {},
     .time = milliseconds(3'000),
     .ends_with_front = true},
    {.stage = Stage::collecting,
     .lasting = {.pipes_open = true, .others_run = true},
     .needs = {&Facts::pipes_open, &Facts::others_run},
     .ends_at = {},
     .time = milliseconds(30'000),
     .ends_with_front = true},
    {.stage = Stage::joining, .lasting = {}, .needs = {}, .ends_at = {}, .time = milliseconds(100)},
};

JobLife entered(Stage stage) {
  JobLife life;
  life.enter(stage, kEntered);
  return life;
}

}  // namespace

TEST_CASE("job life: each stage lasts while it has something to wait for, and no longer than its time", "[launch]") {
  const StageRow& row = kStageRows[GENERATE(range(std::size_t{0}, kStageRows.size()))];
  CAPTURE(static_cast<int>(row.stage));
  const auto late = kEntered + std::chrono::hours(100);
  JobLife life = entered(row.stage);
  CHECK(life.stage() == row.stage);
  CHECK(life.lasts(row.lasting, kEntered));
  if (row.time) {
    REQUIRE(life.deadline() == kEntered + *row.time);
    CHECK(life.lasts(row.lasting, kEntered + *row.time - kOneMs));
    CHECK_FALSE(life.is_late(kEntered + *row.time - kOneMs));
    CHECK(life.is_late(kEntered + *row.time));
    CHECK_FALSE(life.lasts(row.lasting, kEntered + *row.time));
  } else {
    CHECK_FALSE(life.deadline());
    CHECK_FALSE(life.is_late(late));
    CHECK(life.lasts(row.lasting, late));
  }
  life = entered(row.stage);
  Facts facts = row.lasting;
  for (std::size_t i = 0; i < row.needs.size(); ++i) {
    CHECK(life.lasts(facts, kEntered));
    facts.*row.needs[i] = false;
    Facts alone{};
    alone.*row.needs[i] = true;
    CHECK(life.lasts(alone, kEntered));
  }
  if (!row.needs.empty()) CHECK_FALSE(life.lasts(facts, kEntered));
  for (bool Facts::*const end : row.ends_at) {
    facts = row.lasting;
    facts.*end = true;
    CHECK_FALSE(life.lasts(facts, kEntered));
  }
  life.on_front_gone();
  CHECK(life.lasts(row.lasting, kEntered) == !row.ends_with_front);
}

TEST_CASE("job life: no rank is started while the job is stopped, unless it is ending", "[launch]") {
  JobLife life = entered(Stage::starting);
  CHECK_FALSE(life.lasts({.ranks_live = true}, kEntered));
  life.set_stopped(true);
  CHECK(life.lasts({.ranks_live = true}, kEntered + std::chrono::hours(100)));
  CHECK_FALSE(life.lasts({.ranks_live = true, .ranks_end = true}, kEntered));
  life.set_stopped(false);
  CHECK_FALSE(life.lasts({.ranks_live = true}, kEntered));
}

TEST_CASE("job life: only who has interrupted a job gets half a second to read what it wrote", "[launch]") {
  const auto noticed = kEntered + std::chrono::hours(1);
  JobLife life = entered(Stage::writing);
  const Facts slow{.unwritten = true};
  Facts told = slow;
  const std::string by = GENERATE("the signal ended it", "it was ending", "there were no ranks");
  CAPTURE(by);
  CHECK(life.lasts(slow, noticed));
  CHECK_FALSE(life.deadline());
  if (by == "the signal ended it") told.interrupted = true;
  if (by == "it was ending") told.signalled = true;
  if (by == "there were no ranks") life.on_signal(SIGINT);
  CHECK(life.lasts(told, noticed));
  REQUIRE(life.deadline() == noticed + milliseconds(500));
  // From then on output is dropped, which ends the stage.
  CHECK(life.lasts(told, noticed + milliseconds(500)));
  CHECK(life.deadline() == noticed + milliseconds(500));
  CHECK(life.is_late(noticed + milliseconds(500)));
}

TEST_CASE("job life: the time of the last output begins again while our own reader is slow", "[launch]") {
  JobLife life = entered(Stage::collecting);
  const auto later = kEntered + milliseconds(29'000);
  CHECK(life.lasts({.pipes_open = true, .unwritten = true}, later));
  CHECK(life.lasts({.pipes_open = true}, later + milliseconds(29'999)));
  CHECK_FALSE(life.lasts({.pipes_open = true}, later + milliseconds(30'000)));
  life = entered(Stage::collecting);
  life.on_signal(SIGTERM);
  CHECK_FALSE(life.lasts({.pipes_open = true}, kEntered));
}

TEST_CASE("job life: the meeting is awaited until a second signal, a third where launchers are to end", "[launch]") {
  const bool others_run = GENERATE(false, true);
  const Facts facts{.no_news = true, .others_run = others_run};
  JobLife life;
  life.enter(Stage::awaiting, kEntered, kEntered + milliseconds(70));
  CHECK(life.deadline() == kEntered + milliseconds(70));
  for (int signals = 0; signals < (others_run ? 2 : 1); ++signals) {
    life.on_signal(signals == 0 ? SIGTERM : SIGINT);
    CHECK(life.lasts(facts, kEntered + milliseconds(70)));
  }
  life.on_signal(SIGINT);
  CHECK_FALSE(life.lasts(facts, kEntered));
  CHECK(life.signal() == SIGTERM);
  CHECK(life.cut_short().exit_code == col::tools::exit_code::kSignalBase + SIGTERM);
  CHECK(life.cut_short().signal == SIGTERM);
  CHECK(life.cut_short().cause == EndCause::interrupted);
  CHECK(JobLife().cut_short().cause == EndCause::launcher_failed);
  CHECK(JobLife().cut_short().exit_code == col::tools::exit_code::kLauncher);
}

TEST_CASE("job life: of each round of signals, the first that is heard of counts", "[launch]") {
  JobLife life;
  CHECK(life.is_new_round());         // here
  CHECK_FALSE(life.is_new_round(1));  // the same ^C
  CHECK(life.is_new_round(2));
  CHECK_FALSE(life.is_new_round());
  CHECK(life.is_new_round());
  CHECK_FALSE(life.is_new_round(3));
}

TEST_CASE("job life: ranks start again after a failure, if nobody has ended the job meanwhile", "[launch]") {
  JobLife life;
  CHECK(life.may_start_again(EndCause::rank_failed, 0, 1));
  CHECK_FALSE(life.may_start_again(EndCause::rank_failed, 1, 1));
  for (const EndCause cause : {EndCause::none, EndCause::interrupted, EndCause::timed_out, EndCause::exit_timed_out,
                               EndCause::output_closed, EndCause::node_lost, EndCause::launcher_failed})
    CHECK_FALSE(life.may_start_again(cause, 0, 1));
  JobLife left = life;
  left.on_front_gone();
  CHECK_FALSE(left.may_start_again(EndCause::rank_failed, 0, 1));
  life.on_signal(SIGHUP);
  CHECK_FALSE(life.may_start_again(EndCause::rank_failed, 0, 1));
}

#include "launch/supervise/asking.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <col/job.hpp>

#include "common/unique_fd.hpp"
#include "launch/nodes/ask_desk.hpp"
#include "launch/processes/events.hpp"
#include "launch/top/live_job.hpp"
#include "support/catch.hpp"
#include "support/jumping_time.hpp"
#include "support/temp_dir.hpp"

using namespace col::launch;
using std::chrono::milliseconds;

namespace {

const auto kNobody = [](const AskDesk::Request&) { FAIL("nobody asks"); };
const Questions::Time kStart{std::chrono::hours(1)};

JobStory with_rank(int rank) {
  JobStory story;
  story.ranks.resize(1);
  story.ranks[0].rank = rank;
  return story;
}

JobStory with_silent(std::initializer_list<int> nodes) {
  JobStory story;
  for (const int node : nodes) story.silent.push_back({.node_rank = node, .host = "n", .first_rank = node, .ranks = 1});
  return story;
}

}  // namespace

TEST_CASE("questions: one is over when all have answered", "[launch]") {
  Questions questions;
  std::optional<JobStory> whole;
  const int number = questions.open({}, kStart + milliseconds(600), [&](JobStory story) { whole = std::move(story); });
  questions.on_own(number, with_rank(1));
  CHECK_FALSE(whole);
  JobStory asked = with_silent({0, 2});
  asked.restarts = 3;  // which a launcher without ranks is not told
  questions.on_asked(number, std::move(asked));
  questions.on_answer(number, 2, with_rank(2));
  questions.on_answer(number + 1, 0, with_rank(7));
  questions.tick(kStart);
  CHECK_FALSE(whole);
  CHECK(questions.deadline() == kStart + milliseconds(600));
  questions.on_answer(number, 0, with_rank(0));
  REQUIRE(whole);
  REQUIRE(whole->ranks.size() == 3);
  for (int rank = 0; rank < 3; ++rank) CHECK(whole->ranks[static_cast<std::size_t>(rank)].rank == rank);
  CHECK(whole->silent.empty());
  CHECK(whole->restarts == 3);
  CHECK_FALSE(questions.deadline());
}

TEST_CASE("questions: who has not answered in time is named", "[launch]") {
  Questions questions;
  std::optional<JobStory> whole;
  const auto done = [&](JobStory story) { whole = std::move(story); };
  SECTION("of those that the meeting has asked") {
    const int number = questions.open(with_silent({4}), kStart + milliseconds(600), done);
    questions.on_own(number, with_rank(1));
    questions.on_asked(number, with_silent({0, 2}));
    questions.on_answer(number, 2, with_rank(2));
    questions.tick(kStart + milliseconds(600));
    REQUIRE(whole);
    REQUIRE(whole->silent.size() == 1);
    CHECK(whole->silent[0].node_rank == 0);
    CHECK(whole->ranks.size() == 2);
    questions.on_answer(number, 0, with_rank(0));  // too late
  }
  SECTION("and all others, if the meeting says nothing") {
    questions.on_own(questions.open(with_silent({0, 2}), kStart + milliseconds(600), done), with_rank(1));
    questions.tick(kStart + milliseconds(600));
    REQUIRE(whole);
    CHECK(whole->silent.size() == 2);
  }
}

TEST_CASE("ask desk: a question by the socket of a directory, whose path may be long", "[launch]") {
  const col::test::TempDir directory;
  const std::string path = directory.path() + "/" + std::string(200, 'd');
  REQUIRE(::mkdir(path.c_str(), 0700) == 0);
  CHECK_FALSE(AskingLauncher::ask(path, {}));
  Events events;
  bool answered = false;
  std::optional<AskDesk> desk;
  desk.emplace(path, events, [&](const AskDesk::Request& request) {
    CHECK(request.what.calls == 12);
    CHECK(request.what.use);
    desk->answer(request.client, with_rank(5));
    desk->answer(request.client + 1, with_rank(6));  // is gone
    answered = true;
  });
  const col::test::JumpingTime time;
  std::optional<AskingLauncher> asking = AskingLauncher::ask(path, {.calls = 12, .use = true});
  REQUIRE(asking);
  for (int waits = 0; waits < 10 && !answered; ++waits) events.serve(std::chrono::seconds(10));
  REQUIRE(answered);
  const std::optional<JobStory> story = asking->wait();
  REQUIRE(story);
  CHECK(story->ranks.at(0).rank == 5);
}

TEST_CASE("ask desk: a launcher that has not heard all who call is there", "[launch]") {
  const col::test::TempDir directory;
  Events events;
  std::optional<AskDesk> desk(std::in_place, directory.path(), events, kNobody);
  LiveJob job({.id = "job", .directory = directory.path(), .page = nullptr});
  std::vector<AskingLauncher> callers;
  while (callers.size() < 1000) {
    std::optional<AskingLauncher> caller = AskingLauncher::ask(directory.path(), {});
    if (!caller) break;
    callers.push_back(std::move(*caller));
  }
  REQUIRE(callers.size() < 1000);
  CHECK(AskingLauncher::can_ask(directory.path()));
  CHECK_FALSE(job.ask());
  CHECK_FALSE(job.is_over());
  desk.reset();
  CHECK_FALSE(AskingLauncher::can_ask(directory.path()));
  CHECK_FALSE(job.ask());
  CHECK(job.is_over());
}

TEST_CASE("ask desk: a launcher that does not answer is waited for as long as it may take", "[launch]") {
  const col::test::TempDir directory;
  Events events;
  const AskDesk desk(directory.path(), events, kNobody);
  const bool stacks = GENERATE(false, true);
  col::test::JumpingTime time;
  const Questions::Time begin = time.now();
  std::optional<AskingLauncher> asking = AskingLauncher::ask(directory.path(), {.stacks = stacks});
  REQUIRE(asking);
  CHECK_FALSE(asking->wait());
  CHECK_FALSE(asking->is_over());
  CHECK(time.now() - begin == answer_time(stacks) + milliseconds(300));
}

TEST_CASE("live job: goes on while ranks of other hosts live", "[launch]") {
  const col::test::TempDir directory;
  Events events;
  JobStory told;
  bool has_told = false;
  std::optional<AskDesk> desk;
  desk.emplace(directory.path(), events, [&](const AskDesk::Request& request) {
    desk->answer(request.client, told);
    has_told = true;
  });
  const std::shared_ptr<col::ControlPage> page = col::ControlPage::in_memory(1);
  page->record(0).started(0, ::getpid());
  LiveJob job({.id = "job", .directory = directory.path(), .page = page});
  CHECK_FALSE(job.is_over());
  page->record(0).ended(0);
  const auto hear = [&](const JobStory& story) {
    REQUIRE(job.ask());
    told = story;
    for (int waits = 0; !std::exchange(has_told, false); ++waits) {
      REQUIRE(waits < 10);
      events.serve(std::chrono::seconds(10));
    }
    job.wait();
  };
  JobStory story = with_rank(0), other = with_rank(1);
  story.ranks[0].status.exited = true;
  story.ranks.push_back(other.ranks[0]);
  hear(story);
  CHECK_FALSE(job.is_over());
  // Its host does not answer.
  JobStory silent = with_silent({1});
  silent.ranks.push_back(story.ranks[0]);
  hear(silent);
  CHECK_FALSE(job.is_over());
  story.ranks[1].status.exited = true;
  hear(story);
  CHECK(job.is_over());
  // The launcher of this host has ended.
  story.ranks[1].status.exited = false;
  hear(story);
  CHECK_FALSE(job.is_over());
  desk.reset();
  CHECK_FALSE(job.ask());
  CHECK(job.is_over());
  // A job without a launcher that could be asked.
  CHECK(LiveJob({.id = "job", .directory = {}, .page = page}).is_over());
}

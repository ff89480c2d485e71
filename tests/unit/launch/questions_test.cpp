#include "launch/nodes/questions.hpp"

#include <sys/epoll.h>
#include <sys/stat.h>

#include <chrono>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "common/unique_fd.hpp"
#include "launch/nodes/ask_desk.hpp"
#include "launch/processes/descriptors.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

using namespace col::launch;
using std::chrono::milliseconds;

namespace {

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
  questions.on_asked(number, with_silent({0, 2}));
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
  const col::tools::UniqueFd epoll = make_epoll();
  AskDesk desk(path, epoll.get(), 0);
  std::optional<JobStory> story;
  std::thread asker([&] {
    if (auto asking = AskingLauncher::ask(path, {.calls = 12, .use = true})) story = asking->wait();
  });
  bool answered = false;
  while (!answered) {
    epoll_event event{};
    if (::epoll_wait(epoll.get(), &event, 1, 10'000) != 1) break;
    for (const AskDesk::Request& request : desk.on_event(event.data.u64)) {
      CHECK(request.what.calls == 12);
      CHECK(request.what.use);
      desk.answer(request.client, with_rank(5));
      desk.answer(request.client + 1, with_rank(6));  // is gone
      answered = true;
    }
  }
  asker.join();
  CHECK(answered);
  REQUIRE(story);
  CHECK(story->ranks.at(0).rank == 5);
  // Nobody looks at what is asked: it comes back without an answer.
  auto unanswered = AskingLauncher::ask(path, {});
  REQUIRE(unanswered);
  CHECK_FALSE(unanswered->wait());
}

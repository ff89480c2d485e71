// Places of a job with epochs: in its group, asleep, or started again.
#include <chrono>
#include <vector>

#include "launch/supervise/epochs.hpp"
#include "support/catch.hpp"

using col::launch::Places;
using Standing = Places::Standing;

namespace {

const Places::Time kNoon{std::chrono::hours(1)};
constexpr Places::End kWell = Places::End::well, kFailed = Places::End::failed;

}  // namespace

TEST_CASE("places: a spare sleeps until it is taken, and is then one of the ranks", "[launch]") {
  Places places({.ranks = 2, .spares = 1});
  CHECK((places.is_in(0) && places.is_in(1) && places.of(2) == Standing::asleep));
  CHECK(places.left() == 3);
  places.on_ended(1, kFailed, kNoon);
  CHECK(places.of(1) == Standing::lost);
  CHECK_FALSE(places.will_start(1));
  places.on_taken(2);
  CHECK((places.is_in(2) && !places.is_again(2)));
  places.on_ended(0, kWell, kNoon);
  CHECK_FALSE(places.is_over());
  places.on_ended(2, kWell, kNoon);
  CHECK((places.of(2) == Standing::done && places.is_over()));
}

TEST_CASE("places: without a rank the job is over, whoever sleeps", "[launch]") {
  Places places({.ranks = 2, .spares = 2});
  places.on_ended(2, kFailed, kNoon);  // this one has not been a rank
  CHECK((places.of(2) == Standing::lost && !places.is_over()));
  places.on_ended(0, kFailed, kNoon);
  CHECK_FALSE(places.is_over());
  places.on_ended(1, kFailed, kNoon);
  CHECK((places.is_over() && places.of(3) == Standing::asleep));
  CHECK_FALSE(places.are_too_few());
}

TEST_CASE("places: another process comes at once, the next ones after a growing pause", "[launch]") {
  Places places({.ranks = 2, .min_ranks = 1, .max_restarts = 4});
  auto now = kNoon;
  std::vector<std::chrono::milliseconds> pauses;
  for (int restart = 0; restart < 4; ++restart) {
    places.on_ended(1, kFailed, now);
    REQUIRE(places.deadline());
    pauses.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(*places.deadline() - now));
    if (pauses.back().count() > 0) CHECK(places.due(now).empty());
    now = *places.deadline();
    CHECK(places.due(now) == std::vector{1});
    CHECK(places.due(now).empty());
    CHECK((places.of(1) == Standing::asleep && places.restarts(1) == restart + 1));
  }
  CHECK(pauses == std::vector{0 * Places::kPause, Places::kPause, 2 * Places::kPause, 4 * Places::kPause});
  places.on_taken(1);
  places.on_ended(1, kFailed, now);
  CHECK((!places.deadline() && places.of(1) == Standing::lost && !places.are_too_few()));
}

TEST_CASE("places: a pause has a limit", "[launch]") {
  Places places({.ranks = 2, .min_ranks = 1, .max_restarts = 100});
  for (int restart = 0; restart < 60; ++restart) {
    places.on_ended(1, kFailed, kNoon);
    CHECK(*places.deadline() <= kNoon + Places::kLongestPause);
    CHECK(places.due(kNoon + Places::kLongestPause).size() == 1);
  }
}

TEST_CASE("places: nobody is started when the job comes to its end", "[launch]") {
  Places places({.ranks = 3, .min_ranks = 1, .max_restarts = 9});
  places.on_ended(0, kFailed, kNoon);
  CHECK(places.will_start(0));
  places.on_ended(1, kWell, kNoon);
  CHECK_FALSE(places.will_start(0));
  places.on_ended(2, kFailed, kNoon);
  CHECK((places.is_over() && !places.deadline() && places.due(kNoon + Places::kLongestPause).empty()));
}

TEST_CASE("places: the last rank takes those with it that wait for their start", "[launch]") {
  Places places({.ranks = 2, .min_ranks = 1, .max_restarts = 9});
  for (const int place : {0, 0, 1}) {
    places.on_ended(place, kFailed, kNoon);
    if (place == 0) places.due(kNoon);
  }
  CHECK(places.is_over());
  CHECK((places.due(kNoon + Places::kLongestPause).empty() && !places.deadline()));
}

TEST_CASE("places: too few are those that live, come again and have ended well", "[launch]") {
  Places places({.ranks = 3, .spares = 1, .min_ranks = 3, .max_restarts = 0});
  places.on_ended(0, kFailed, kNoon);
  CHECK_FALSE(places.are_too_few());  // the spare counts
  places.on_ended(1, kWell, kNoon);
  CHECK_FALSE(places.are_too_few());
  places.on_ended(2, kFailed, kNoon);
  CHECK(places.are_too_few());

  Places again({.ranks = 2, .min_ranks = 2, .max_restarts = 1});
  again.on_ended(0, kFailed, kNoon);
  CHECK_FALSE(again.are_too_few());
  again.due(kNoon);
  again.on_ended(0, kFailed, kNoon);
  CHECK(again.are_too_few());
}

TEST_CASE("places: who was left out has a time to notice, and who left is no loss", "[launch]") {
  Places places({.ranks = 3, .min_ranks = 1, .max_restarts = 9});
  const auto until = kNoon + std::chrono::seconds(5);
  places.on_left_out(1, until);
  places.on_left_out(2, until);
  CHECK((places.deadline() == until && places.late(kNoon).empty()));
  places.on_ended(2, Places::End::after_leaving, kNoon);
  CHECK((places.of(2) == Standing::left && !places.will_start(2)));
  CHECK(places.late(until) == std::vector{1});
  CHECK((places.late(until).empty() && !places.deadline()));
  // The job goes on: others are started where they are lost.
  places.on_ended(1, kFailed, until);
  CHECK(places.will_start(1));
}

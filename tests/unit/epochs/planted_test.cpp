// Bugs that plant_bugs.sh has planted in the change of epochs are found by the search that finds nothing without them.
#include <string>
#include <vector>

#include <fmt/core.h>

#include "support/catch.hpp"
#include "support/protocol/state_space.hpp"
#include "unit/epochs/world.hpp"

namespace col::test {

namespace {
int planted_bug = 0;
}

bool planted(int bug);
bool planted(int bug) {
  return bug == planted_bug;
}

}  // namespace col::test

using namespace col::test;

namespace {

// Where a bug shows, and the promise that it breaks.
struct Planted {
  int bug = 0;
  Scenario scenario = {};
  std::string broken = {};
};

Exploration search_with(int bug, const Scenario& scenario) {
  planted_bug = bug;
  const Epochs space(scenario);
  return search(space, space.first());
}

}  // namespace

TEST_CASE("epochs: each planted bug is found", "[epochs]") {
  const Scenario one_dies{.members = 3, .deaths = 1};
  const Scenario two_die{.members = 3, .deaths = 2};
  const Scenario one_joins{.members = 3, .joiners = 1, .deaths = 1};
  const Scenario one_leaves{.members = 3, .planned = {{0, {.excluded = {1}}}}};
  const std::vector<Planted> all = {
      {1, {.members = 3, .joiners = 1, .deaths = 2}, "a connection of epoch"},
      {2, two_die, "waits for ever"},
      {3, one_dies, "waits for ever"},
      {4, {.joiners = 1, .planned = {{0, {.size = 3}}, {1, {.excluded = {2}}}}}, "is served twice"},
      {5, {.members = 3, .deaths = 1, .min = 3}, "fewer than min"},
      {6, one_dies, "another progress"},
      {7, two_die, "the register goes back"},
      {8, two_die, "is not open"},
      {9, {.members = 3, .accusations = 1}, "no member"},
      {10, {.members = 3, .deaths = 1, .one_is_derived = true}, "waits for ever"},
      {11, one_dies, "an operation of an older epoch"},
      {12, {.members = 3, .deaths = 1, .has_all_looks = true}, "(7)"},
      {13, {.joiners = 2, .deaths = 1, .planned = {{0, {.size = 4}}}}, "is used up"},
      {14, {.members = 4, .deaths = 2}, "has not come for epoch"},
      {15, one_leaves, "waits for ever"},
      {16, {.members = 3, .deaths = 1, .accusations = 1}, "rounds"},
      {17, one_dies, "the word of"},
      {18, {.members = 4, .deaths = 2}, "has connections of epoch"},
      {19, one_joins, "wait for one that joins"},
      {20, one_dies, "had connected"},
      {21, one_joins, "(11)"},
  };
  for (const Planted& one : all) {
    const Exploration found = search_with(one.bug, one.scenario);
    const std::string last = found.stuck.substr(found.stuck.rfind('\n') + 1);
    fmt::print("bug {}: {} states, {}\n", one.bug, found.states, last);
    INFO("bug " << one.bug << ": " << last);
    CHECK(last.find(one.broken) != std::string::npos);
  }
  // The copies are right as long as nothing is switched on.
  CHECK(search_with(0, two_die).stuck == "");
}

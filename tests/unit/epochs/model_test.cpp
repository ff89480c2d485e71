// The change of epochs keeps its promises in all orders in which its steps can come: world.hpp, checks.cpp, and
// docs/decisions/0065-epochs.md.
#include <ctime>

#include <fmt/core.h>

#include "support/catch.hpp"
#include "support/protocol/state_space.hpp"
#include "unit/epochs/world.hpp"

using namespace col::test;

namespace {

void keeps_its_promises(const Scenario& scenario) {
  const Epochs space(scenario);
  const std::clock_t begun = std::clock();
  const Exploration found = search(space, space.first());
  fmt::print("{}: {} states, {} ends, {:.1f} s of processor time\n", scenario.name, found.states, found.ends,
             static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC);
  INFO(scenario.name << ", " << found.states << " states");
  CHECK(found.stuck == "");
  CHECK(found.ends > 0);
}

}  // namespace

TEST_CASE("epochs: a rank dies, and another one while the others go on", "[epochs]") {
  keeps_its_promises({.name = "1 of 3 dies", .members = 3, .deaths = 1, .has_all_looks = true});
  keeps_its_promises({.name = "2 of 3 die", .members = 3, .deaths = 2, .has_all_looks = true});
  keeps_its_promises({.name = "3 of 3 die", .members = 3, .deaths = 3});
  keeps_its_promises({.name = "3 of 4 die", .members = 4, .deaths = 3});
  keeps_its_promises({.name = "a derived group", .members = 3, .deaths = 2, .one_is_derived = true});
}

TEST_CASE("epochs: others take the places of the dead", "[epochs]") {
  keeps_its_promises({.name = "1 for 1 of 2", .joiners = 1, .deaths = 2, .has_all_looks = true});
  keeps_its_promises({.name = "1 for 1 of 3", .members = 3, .joiners = 1, .deaths = 1});
  keeps_its_promises({.name = "2 wait for 2", .joiners = 2, .deaths = 2});
}

TEST_CASE("epochs: a group grows and loses ranks as its program wants", "[epochs]") {
  keeps_its_promises({.name = "grow to 3", .joiners = 1, .planned = {{0, {.size = 3}}}, .has_all_looks = true});
  keeps_its_promises({.name = "grow to 3, and 1 dies", .joiners = 1, .deaths = 1, .planned = {{0, {.size = 3}}}});
  keeps_its_promises(
      {.name = "grow, and let it go", .joiners = 1, .planned = {{0, {.size = 3}}, {1, {.excluded = {2}}}}});
  keeps_its_promises({.name = "1 of 3 leaves", .members = 3, .deaths = 1, .planned = {{0, {.excluded = {1}}}}});
}

TEST_CASE("epochs: ranks that live are taken for dead, are late, or cannot reach the register", "[epochs]") {
  keeps_its_promises({.name = "1 is accused", .members = 3, .accusations = 1});
  keeps_its_promises({.name = "1 deadline", .members = 3, .deaths = 1, .deadlines = 1, .retries = 1});
  keeps_its_promises({.name = "1 cut", .members = 3, .deaths = 1, .cuts = 1});
}

TEST_CASE("epochs: a renewal that cannot succeed fails alike on all", "[epochs]") {
  keeps_its_promises({.name = "fewer than min", .joiners = 1, .deaths = 2, .min = 2, .has_all_looks = true});
  keeps_its_promises({.name = "unequal wishes", .members = 3, .deaths = 1, .one_differs = true, .has_all_looks = true});
  keeps_its_promises({.name = "more than there is room for", .deaths = 1, .size = 3, .most = 2, .has_all_looks = true});
}

TEST_CASE("epochs: more ranks, more deaths", "[epochs][rest]") {
  keeps_its_promises({.name = "3 die, 1 for 3", .members = 3, .joiners = 1, .deaths = 3});
  keeps_its_promises({.name = "3 die, 2 for 2", .joiners = 2, .deaths = 3});
  keeps_its_promises(
      {.name = "1 of 3 dies, all looks", .members = 3, .joiners = 1, .deaths = 1, .has_all_looks = true});
}

TEST_CASE("epochs: more that wait, are accused, late or cut off", "[epochs][rest]") {
  keeps_its_promises({.name = "1 waited for", .members = 3, .joiners = 1, .deaths = 1, .has_wait = true});
  keeps_its_promises({.name = "1 is accused, 1 dies", .members = 3, .deaths = 1, .accusations = 1});
  keeps_its_promises({.name = "1 is accused, 1 joins", .joiners = 1, .deaths = 1, .accusations = 1});
  keeps_its_promises({.name = "2 are accused", .members = 3, .accusations = 2});
  keeps_its_promises({.name = "1 deadline, 1 joins", .joiners = 1, .deaths = 1, .deadlines = 1, .retries = 1});
  keeps_its_promises({.name = "1 cut, 1 joins", .joiners = 1, .deaths = 1, .cuts = 1});
}

// Every planted bug is found by the properties that are said to find it, and what has no bug passes.
#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "colcheck/engine/property.hpp"
#include "colcheck/properties/list.hpp"
#include "colcheck/selftest/planted_backend.hpp"
#include "colcheck/selftest/self_test.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"

namespace col::colcheck {
namespace {

constexpr std::uint64_t kSeed = 1;
constexpr Duration kTimeout = std::chrono::seconds(20);

// What each rank has found in each case; nothing from where the rank's group broke.
using Findings = std::vector<std::vector<std::optional<Finding>>>;

void run_rank(Context& context, const std::vector<Case>& cases, std::vector<std::optional<Finding>>& found) {
  const Case& first = cases.front();
  const Group group = context.init_group(
      {.name = "planted", .rank = context.spec().rank, .world_size = first.ranks, .backend_name = first.backend});
  Rank rank(context, group, first.backend, kTimeout);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    try {
      found[i] = find_property(cases[i].property)->run(rank, cases[i]);
    } catch (const std::exception& error) {
      found[i] = Finding::fail(error.what());
      return;
    }
  }
}

// The findings of all ranks as one: the worst of them, or that they should be alike and are not.
Finding together(const Findings& found, std::size_t index) {
  Finding worst;
  std::optional<std::uint64_t> digest;
  for (const auto& of_rank : found) {
    if (!of_rank[index]) continue;
    if (of_rank[index]->verdict > worst.verdict) worst = *of_rank[index];
    if (digest && of_rank[index]->digest && *digest != *of_rank[index]->digest) return Finding::fail("digests differ");
    if (of_rank[index]->digest) digest = of_rank[index]->digest;
  }
  return worst;
}

std::vector<CaseResult> run_in_threads(std::vector<Case> cases) {
  std::vector<CaseResult> results;
  while (!cases.empty()) {
    const int ranks = cases.front().ranks;
    Findings found(static_cast<std::size_t>(ranks), std::vector<std::optional<Finding>>(cases.size()));
    const auto outcomes = test::run_threads(
        ranks, [&](int rank, Context& context) { run_rank(context, cases, found[static_cast<std::size_t>(rank)]); },
        {.timeout = kTimeout});
    INFO(test::show(outcomes));
    REQUIRE(test::all_good(outcomes));
    std::size_t done = 0;  // up to the first case that broke the group of a rank
    const auto all_have = [&](std::size_t i) {
      return std::all_of(found.begin(), found.end(), [i](const auto& of_rank) { return of_rank[i].has_value(); });
    };
    while (done < cases.size() && (done == 0 || all_have(done))) {
      const Finding finding = together(found, done);
      results.push_back({.c = cases[done], .verdict = finding.verdict, .text = finding.text});
      ++done;
    }
    cases.erase(cases.begin(), cases.begin() + static_cast<std::ptrdiff_t>(done));
  }
  return results;
}

HuntResult search(const PlantedBug& bug, std::uint64_t seed = kSeed) {
  Hunt hunt(bug, seed);
  for (auto cases = hunt.next(); !cases.empty(); cases = hunt.next()) hunt.add(run_in_threads(cases));
  return hunt.result();
}

const PlantedBug& bug_named(std::string_view name) {
  const auto bugs = planted_bugs();
  const auto bug = std::find_if(bugs.begin(), bugs.end(), [&](const PlantedBug& one) { return one.name == name; });
  REQUIRE(bug != bugs.end());
  return *bug;
}

CaseResult result_of(const Case& c, Finding::Verdict verdict) {
  return {.c = c, .verdict = verdict, .text = "made up"};
}

// A hunt in which a case fails when `fails` says so, without running any.
template <class Fails>
HuntResult imagined(const PlantedBug& bug, Fails fails) {
  Hunt hunt(bug, kSeed);
  for (auto cases = hunt.next(); !cases.empty(); cases = hunt.next()) {
    std::vector<CaseResult> results;
    for (const Case& c : cases)
      results.push_back(result_of(c, fails(c) ? Finding::Verdict::fail : Finding::Verdict::pass));
    hunt.add(results);
  }
  return hunt.result();
}

}  // namespace

TEST_CASE("self-test: without a bug, every case passes", "[colcheck]") {
  register_planted_backends();
  const HuntResult control = search(bug_named("none"));
  INFO(table_of({&control, 1}));
  CHECK(control.is_good());
  CHECK(control.cases() > 100);
}

TEST_CASE("self-test: each planted bug is found by each property that is to find it", "[colcheck][rest]") {
  register_planted_backends();
  std::vector<HuntResult> catches;
  for (const PlantedBug& bug : planted_bugs()) {
    if (!bug.is_control()) catches.push_back(search(bug));
  }
  INFO(table_of(catches));
  CHECK(catches.size() >= 12);
  CHECK(all_good(catches));
}

TEST_CASE("self-test: planted bugs have names, summaries and finders, and no two are the same", "[colcheck]") {
  std::set<std::string_view> names;
  std::set<Bug> bugs;
  for (const PlantedBug& bug : planted_bugs()) {
    INFO(bug.name);
    CHECK(names.insert(bug.name).second);
    CHECK(bugs.insert(bug.bug).second);
    CHECK(&bug_named(bug.name) == &bug);
    CHECK_FALSE(bug.summary.empty());
    CHECK(bug.caught_by.empty() == bug.is_control());
  }
  CHECK(planted_bugs().front().is_control());
}

TEST_CASE("self-test: a backend's cases are on its own algorithm and on few ranks", "[colcheck]") {
  Hunt hunt(bug_named("lost_nan"), kSeed);
  for (auto cases = hunt.next(); !cases.empty(); cases = hunt.next()) {
    for (const Case& c : cases) {
      CHECK(c.backend == "planted-lost_nan");
      CHECK(c.algorithm == "planted");
      CHECK(c.ranks == cases.front().ranks);
      CHECK(c.ranks <= kSelfTestRanks);
    }
  }
}

TEST_CASE("self-test: a bug that nobody finds is missed", "[colcheck]") {
  const HuntResult missed = imagined(bug_named("lost_nan"), [](const Case&) { return false; });
  CHECK(missed.cases() > 0);
  CHECK_FALSE(missed.is_good());
  CHECK(table_of({&missed, 1}).find("MISSED") != std::string::npos);
  CHECK(table_of({&missed, 1}).find("0 of 1 planted bugs caught") != std::string::npos);
}

TEST_CASE("self-test: a property that has failed three times is asked no more", "[colcheck]") {
  const HuntResult caught = imagined(bug_named("lost_nan"), [](const Case&) { return true; });
  CHECK(caught.is_good());
  for (const HuntResult::Finder& finder : caught.finders) CHECK(finder.cases <= 100);
}

TEST_CASE("self-test: the smallest failing case is shown", "[colcheck]") {
  const HuntResult caught = imagined(bug_named("dropped_last_element"), [](const Case& c) { return c.ranks < 4; });
  CHECK(caught.is_good());
  CHECK(caught.smallest.c.ranks < 4);
  CHECK(table_of({&caught, 1}).find(token_of(caught.smallest.c)) != std::string::npos);
}

TEST_CASE("self-test: one failure without a bug is one too many, and so is none that ran", "[colcheck]") {
  bool first = true;
  const HuntResult failed = imagined(bug_named("none"), [&](const Case&) { return std::exchange(first, false); });
  CHECK(failed.failed() == 1);
  CHECK_FALSE(failed.is_good());
  CHECK_FALSE(all_good({}));
  Hunt never_ran(bug_named("none"), kSeed);
  CHECK_FALSE(never_ran.result().is_good());
}

}  // namespace col::colcheck

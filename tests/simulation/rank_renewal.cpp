// How the world of a simulated job goes on in its next epochs, while ranks are killed or stand still, and others join
// in their places.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "core/clock/clock.hpp"
#include "simulation/rank.hpp"

namespace col::test {

void SimulatedRank::renew_world(const std::vector<int>& survivors) {
  if (around_.tries.empty()) begin_try(0);
  end_tries(0, !renew_once(survivors, 0));
}

void SimulatedRank::begin_try(std::size_t renewal) {
  around_.tries.push_back(std::make_unique<Surroundings::Try>(renewal, around_));
  around_.truth.strike(around_.plan.renewals[renewal]);
}

// All ranks meet after each try, and try again if any of them has failed.
void SimulatedRank::end_tries(std::size_t number, bool has_failed) {
  for (;; ++number) {
    around_.simulator.say_place("muster of renewals");
    Surroundings::Try& last = *around_.tries[number];
    const Muster::Result others = last.end.come(rank_, has_failed, true);
    const std::size_t renewal = last.renewal + (others.has_any_failed ? 0 : 1);
    if (renewal == around_.plan.renewals.size()) return;
    constexpr std::size_t kMostTries = 40;
    if (number == kMostTries) return around_.checks.problem(fmt::format("rank {}: renews for ever", process_));
    if (around_.tries.size() == number + 1) begin_try(renewal);
    has_failed = !renew_once(others.survivors, number + 1);
  }
}

// Where somebody was the last of a host, nobody can tell that it has ended: then it is left out by name.
bool SimulatedRank::renew_once(const std::vector<int>& survivors, std::uint64_t progress) {
  const auto lives = [&](int rank) { return std::ranges::binary_search(survivors, rank); };
  const auto is_seen = [&](int gone) {
    return std::ranges::any_of(survivors,
                               [&](int rank) { return around_.plan.host_of(rank) == around_.plan.host_of(gone); });
  };
  const JobPlan& plan = around_.plan;
  const std::vector<int> before = groups_.front().ranks();
  const std::uint64_t last = groups_.front().epoch();
  std::vector<int> excluded;
  for (const int rank : before) {
    if (!lives(rank) && !is_seen(rank)) excluded.push_back(groups_.front().rank_of(rank));
  }
  try {
    call("renew", plan.timeout, [&] {
      groups_.front() = groups_.front().renew({.wait = plan.newcomers.empty() ? Duration() : plan.timeout / 4,
                                               .excluded = excluded,
                                               .progress = progress + static_cast<unsigned>(rank_)});
    });
    Group world = groups_.front();
    if (world.epoch() <= last ||
        before.size() + world.newcomers().size() != static_cast<std::size_t>(world.size()) + world.lost().size())
      around_.checks.problem(fmt::format("rank {}: epoch {} comes after {}, with {} newcomers", process_, world.epoch(),
                                         last, world.newcomers().size()));
    check_epoch(world, before);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Newcomers are where a rank was killed; from now on, the others wait for them, too. The source has the most progress
// of those who have some.
void SimulatedRank::check_epoch(Group world, const std::vector<int>& before) {
  const std::vector<int> ranks = world.ranks(), newcomers = world.newcomers();
  std::vector<int> survivors;
  for (int number = 0; number < world.size(); ++number) {
    const int rank = ranks[static_cast<std::size_t>(number)];
    if (std::ranges::count(newcomers, number) == 0) {
      survivors.push_back(rank);
      continue;
    }
    const auto place = std::ranges::find(around_.plan.newcomers, rank);
    if (place == around_.plan.newcomers.end())
      return around_.checks.problem(fmt::format("rank {}: rank {} has joined", process_, rank));
    around_.holders[static_cast<std::size_t>(rank)] =
        around_.plan.process_of_newcomer(static_cast<int>(place - around_.plan.newcomers.begin()));
  }
  if (ranks[static_cast<std::size_t>(world.rank())] != rank_ ||
      ranks[static_cast<std::size_t>(world.source())] != *std::ranges::max_element(survivors) ||
      !(before.empty() || have_right_numbers(before, ranks, survivors)))
    around_.checks.problem(fmt::format("rank {}: epoch {} is not as it should be", process_, world.epoch()));
  call("use of an epoch", 2 * around_.plan.timeout, [&] {
    if (use(world) != std::accumulate(ranks.begin(), ranks.end(), std::int64_t{0}))
      around_.checks.problem(fmt::format("rank {}: others are in epoch {}", process_, world.epoch()));
  });
}

// Survivors keep their numbers, unless that would leave a hole: then they are numbered from 0 in the same order.
bool SimulatedRank::have_right_numbers(const std::vector<int>& before, const std::vector<int>& ranks,
                                       const std::vector<int>& survivors) {
  std::vector<std::size_t> kept;
  for (std::size_t number = 0; number < before.size(); ++number) {
    if (std::ranges::count(survivors, before[number]) > 0) kept.push_back(number);
  }
  if (kept.size() != survivors.size()) return false;
  const bool has_hole = kept.back() >= ranks.size();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (ranks[has_hole ? i : kept[i]] != before[kept[i]]) return false;
  }
  return true;
}

// ---- A newcomer

// Returns whether there is a place for it.
bool SimulatedRank::await_place() {
  const auto lives = [&](int rank) { return around_.simulator.state_of(rank) != core::ProcessCondition::gone; };
  for (;;) {
    bool is_any_left = false;
    for (int rank = 0; rank < around_.plan.ranks; ++rank) is_any_left = is_any_left || lives(rank);
    if (!is_any_left) return false;
    if (!around_.tries.empty() && around_.truth.ended_at(rank_) != Simulator::Time::max()) return true;
    core::sleep_for(std::chrono::milliseconds(20));
  }
}

// Where it is not let in, or cannot connect, it ends: the others take it for lost.
void SimulatedRank::run_as_newcomer() {
  if (!await_place()) return;
  std::vector<int> all(around_.holders.size());
  std::iota(all.begin(), all.end(), 0);
  Context context(spec("first", all, {.rank = rank_, .size = around_.plan.ranks}, around_.plan.timeout));
  bool has_failed = true;
  try {
    call("join", around_.plan.timeout, [&] { groups_.push_back(context.join_group("default")); });
    if (std::ranges::count(groups_.front().newcomers(), groups_.front().rank()) == 0)
      around_.checks.problem(fmt::format("rank {}: is no newcomer", process_));
    check_epoch(groups_.front(), {});
    has_failed = false;
  } catch (const Error&) {
  }
  if (!groups_.empty()) end_tries(around_.tries.size() - 1, has_failed);
  leave(context);
}

}  // namespace col::test

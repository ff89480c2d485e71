// How the world of a simulated job goes on in its next epochs, while ranks are killed or stand still.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "simulation/rank.hpp"

namespace col::test {

// All ranks meet after each try, and try again if any of them has failed. Where that was the last of a host, nobody can
// tell that it has ended: then it is left out by name.
void SimulatedRank::renew_world(std::vector<int> survivors) {
  std::size_t tries = 0;
  for (std::size_t renewal = 0; renewal < around_.plan.renewals.size();) {
    if (around_.later.size() == tries) {
      around_.later.push_back(std::make_unique<Muster>(around_.simulator, around_.truth, around_.plan.ranks));
      around_.truth.strike(around_.plan.renewals[renewal]);
    }
    const bool has_failed = !renew_once(survivors, tries);
    around_.simulator.say_place("muster of renewals");
    const Muster::Result others = around_.later[tries++]->come(rank_, has_failed, true);
    survivors = others.survivors;
    if (!others.has_any_failed) ++renewal;
    constexpr std::size_t kMostTries = 40;
    if (tries == kMostTries) return around_.checks.problem(fmt::format("rank {}: renews for ever", rank_));
  }
}

bool SimulatedRank::renew_once(const std::vector<int>& survivors, std::uint64_t progress) {
  const auto lives = [&](int rank) { return std::ranges::binary_search(survivors, rank); };
  const auto is_seen = [&](int gone) {
    return std::ranges::any_of(survivors,
                               [&](int rank) { return around_.plan.host_of(rank) == around_.plan.host_of(gone); });
  };
  const std::vector<int> before = groups_.front().ranks();
  const std::uint64_t last = groups_.front().epoch();
  std::vector<int> excluded;
  for (const int rank : before) {
    if (!lives(rank) && !is_seen(rank)) excluded.push_back(groups_.front().rank_of(rank));
  }
  try {
    call("renew", around_.plan.timeout, [&] {
      groups_.front() =
          groups_.front().renew({.excluded = excluded, .progress = progress + static_cast<unsigned>(rank_)});
    });
    Group world = groups_.front();
    const std::vector<int> ranks = world.ranks();
    const int source = *std::ranges::max_element(ranks);
    const bool is_right = world.epoch() > last && ranks[static_cast<std::size_t>(world.rank())] == rank_ &&
                          before.size() == ranks.size() + world.lost().size() && world.newcomers().empty() &&
                          ranks[static_cast<std::size_t>(world.source())] == source;
    if (!is_right)
      around_.checks.problem(fmt::format("rank {}: epoch {} is not as it should be", rank_, world.epoch()));
    call("use of an epoch", 2 * around_.plan.timeout, [&] { use(world); });
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace col::test

#include "launch/place/shares.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace col::launch {
namespace {

auto place_of(const Core& core) {
  return std::tuple(core.node, core.cache, core.cpus.front());
}

// Within what the cores of a share should be together, from the narrowest.
enum class Domain { cache, node, machine };

bool are_together(const Core& a, const Core& b, Domain domain) {
  if (domain == Domain::machine) return true;
  return a.node == b.node && (domain == Domain::node || a.cache == b.cache);
}

std::vector<std::vector<Core>> divided(const std::vector<Core>& cores, Domain domain) {
  std::vector<std::vector<Core>> groups;
  for (const Core& core : cores) {
    if (groups.empty() || !are_together(groups.back().front(), core, domain)) groups.emplace_back();
    groups.back().push_back(core);
  }
  return groups;
}

// How many shares each group gives: always one more from that with the most room, of several from the node that has
// given the fewest. They are `wanted` together, or as many as have room.
std::vector<std::size_t> dealt_out(const std::vector<std::vector<Core>>& groups, std::size_t share_size,
                                   std::size_t wanted) {
  std::vector<std::size_t> given(groups.size());
  std::map<int, std::size_t> of_node;
  for (; wanted > 0; --wanted) {
    std::optional<std::size_t> best;
    const auto merit = [&](std::size_t i) {
      const std::size_t room = groups[i].size() / share_size - given[i];
      return std::pair(room, -static_cast<long>(of_node[groups[i].front().node]));
    };
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (merit(i).first > 0 && (!best || merit(i) > merit(*best))) best = i;
    }
    if (!best) break;
    ++given[*best];
    ++of_node[groups[*best].front().node];
  }
  return given;
}

}  // namespace

std::vector<Share> equal_shares(std::vector<Core> cores, int ranks) {
  const auto wanted = static_cast<std::size_t>(ranks);
  const std::size_t size = cores.size() / wanted;
  std::ranges::sort(cores, {}, place_of);
  std::vector<Share> shares;
  for (const Domain domain : {Domain::cache, Domain::node, Domain::machine}) {
    const auto groups = divided(cores, domain);
    const auto counts = dealt_out(groups, size, wanted - shares.size());
    cores.clear();
    for (std::size_t i = 0; i < groups.size(); ++i) {
      auto next = groups[i].begin();
      for (std::size_t count = counts[i]; count > 0; --count, next += static_cast<std::ptrdiff_t>(size))
        shares.emplace_back(next, next + static_cast<std::ptrdiff_t>(size));
      cores.insert(cores.end(), next, groups[i].end());
    }
  }
  std::ranges::sort(shares, {}, [](const Share& share) { return place_of(share.front()); });
  return shares;
}

std::vector<Share> near_devices(std::vector<Share> shares, std::span<const int> nodes) {
  std::vector<std::optional<std::size_t>> chosen(shares.size());
  std::vector<bool> is_free(shares.size(), true);
  const auto choose = [&](std::size_t rank, auto fits) {
    for (std::size_t i = 0; i < shares.size() && !chosen[rank]; ++i) {
      if (!is_free[i] || !fits(shares[i])) continue;
      chosen[rank] = i;
      is_free[i] = false;
    }
  };
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    choose(rank, [&](const Share& share) {
      return std::ranges::all_of(share, [&](const Core& core) { return core.node == nodes[rank]; });
    });
  }
  std::vector<Share> ordered;
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    choose(rank, [](const Share&) { return true; });
    ordered.push_back(std::move(shares[*chosen[rank]]));
  }
  return ordered;
}

}  // namespace col::launch

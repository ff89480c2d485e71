#include "launch/place/auto_binding.hpp"

#include <string.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "common/text.hpp"

namespace col::launch {
namespace {

std::vector<int> cpus_of(const Share& share) {
  std::vector<int> cpus;
  for (const Core& core : share) cpus.insert(cpus.end(), core.cpus.begin(), core.cpus.end());
  std::ranges::sort(cpus);
  return cpus;
}

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

std::string why_not_bound(const Allowance& allowance, int local_ranks) {
  const std::vector<int>& allowed = allowance.allowed;
  if (local_ranks == 1) return "a single rank may use all of them";
  if (static_cast<std::size_t>(local_ranks) > allowed.size())
    return fmt::format("there are {} ranks on {}", local_ranks, tools::counted(allowed.size(), "CPU"));
  if (!std::ranges::includes(allowed, allowance.offered))
    return fmt::format("colrun itself was bound, to {} of {}", cpu_list_text(allowed),
                       cpu_list_text(allowance.offered));
  if (allowance.quota && *allowance.quota < static_cast<double>(allowed.size()))
    return fmt::format("the control group gives {:.3g} CPUs' time on {}", *allowance.quota,
                       tools::counted(allowed.size(), "CPU"));
  return {};
}

Binding bind_to_shares(const Topology& topology, const RankNeeds& needs, CoreLocks& locks) {
  const auto ranks = static_cast<std::size_t>(needs.ranks);
  const std::size_t cores = topology.cores.size();
  Binding binding{.cpus = std::vector<std::vector<int>>(ranks)};
  if (ranks > cores) {
    binding.why_not = fmt::format("there are {} ranks on {}", ranks, tools::counted(cores, "core"));
    return binding;
  }
  const std::vector<Core> free = locks.take(topology.cores);
  const std::string others = free.size() == cores ? ""
                                                  : fmt::format("other jobs hold {} of {}", cores - free.size(),
                                                                tools::counted(cores, "core"));
  std::vector<Share> shares;
  if (locks.error() != 0)
    binding.why_not = fmt::format("what other jobs use cannot be seen ({})", strerror(locks.error()));
  else if (free.size() < ranks)
    binding.why_not = others;
  else
    shares = equal_shares(free, needs.ranks);
  if (shares.size() == needs.nodes.size()) shares = near_devices(std::move(shares), needs.nodes);

  std::vector<std::vector<int>> cpus;
  std::vector<int> all;
  for (const Share& share : shares) {
    cpus.push_back(cpus_of(share));
    all.insert(all.end(), cpus.back().begin(), cpus.back().end());
    if (cpus.back().size() >= static_cast<std::size_t>(needs.threads) || !binding.why_not.empty()) continue;
    binding.why_not = fmt::format("OMP_NUM_THREADS is {}, and {}a share has {}", needs.threads,
                                  others.empty() ? "" : others + ": ", tools::counted(cpus.back().size(), "CPU"));
  }
  if (binding.why_not.empty())
    binding.cpus = std::move(cpus);
  else
    all.clear();
  std::ranges::sort(all);
  locks.keep(all);
  return binding;
}

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

#include "launch/place/auto_binding.hpp"

#include <string.h>

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "common/text.hpp"
#include "launch/place/shares.hpp"

namespace col::launch {
namespace {

std::vector<int> cpus_of(const Share& share) {
  std::vector<int> cpus;
  for (const Core& core : share) cpus.insert(cpus.end(), core.cpus.begin(), core.cpus.end());
  std::ranges::sort(cpus);
  return cpus;
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

}  // namespace col::launch

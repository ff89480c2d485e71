#include "launch/place/placement.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/place/auto_binding.hpp"
#include "launch/place/cpu_quota.hpp"
#include "launch/place/topology.hpp"

namespace col::launch {
namespace {

using CpuSets = std::vector<std::vector<int>>;

// The cores of each NUMA node that has some.
std::vector<std::vector<Core>> cores_by_node(const Topology& topology) {
  std::vector<std::vector<Core>> nodes;
  for (const Core& core : topology.cores) {
    if (nodes.empty() || nodes.back().front().node != core.node) nodes.emplace_back();
    nodes.back().push_back(core);
  }
  return nodes;
}

// Every core once, in the order in which ranks are dealt out to them.
std::vector<Core> dealing_order(const Topology& topology, BindingSpec::MapBy map_by) {
  if (map_by == BindingSpec::MapBy::core) return topology.cores;
  const auto nodes = cores_by_node(topology);
  std::vector<Core> order;
  for (std::size_t turn = 0; order.size() < topology.cores.size(); ++turn) {
    for (const auto& cores : nodes) {
      if (turn < cores.size()) order.push_back(cores[turn]);
    }
  }
  return order;
}

std::vector<int> cpus_of_node(const Topology& topology, int node) {
  std::vector<int> cpus;
  for (const Core& core : topology.cores) {
    if (core.node == node) cpus.insert(cpus.end(), core.cpus.begin(), core.cpus.end());
  }
  std::ranges::sort(cpus);
  return cpus;
}

CpuSets checked_lists(const Topology& topology, CpuSets lists) {
  const std::vector<int> allowed = topology.cpus();
  std::vector<int> strangers;
  bool has_empty = lists.empty();
  for (auto& cpus : lists) {
    std::ranges::sort(cpus);
    cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
    has_empty = has_empty || cpus.empty();
    std::set_difference(cpus.begin(), cpus.end(), allowed.begin(), allowed.end(), std::back_inserter(strangers));
  }
  if (has_empty) {
    throw LaunchError(tools::exit_code::kUsage,
                      "--bind-to list: needs processors for every rank it names, as in list:0-1;2-3");
  }
  std::ranges::sort(strangers);
  strangers.erase(std::unique(strangers.begin(), strangers.end()), strangers.end());
  if (!strangers.empty()) {
    throw LaunchError(tools::exit_code::kUsage,
                      "--bind-to list names CPU{} {}, but this process may run on {} only; name some of "
                      "these (taskset -cp $$ shows them)",
                      strangers.size() == 1 ? "" : "s", cpu_list_text(strangers), cpu_list_text(allowed));
  }
  return lists;
}

// "core 3", "cores 0-1", "half a core" when its other hardware threads are not of the set.
std::string name_of_cores(const Topology& topology, const std::vector<const Core*>& cores, std::size_t cpus) {
  std::vector<int> numbers;
  for (const Core* core : cores) numbers.push_back(core->number);
  std::ranges::sort(numbers);
  std::string name;
  if (cores.size() == 1 && cpus < static_cast<std::size_t>(cores.front()->threads)) {
    name = fmt::format("{} of {} threads of ", cpus, cores.front()->threads);
  }
  name += fmt::format("core{} {}", cores.size() == 1 ? "" : "s", cpu_list_text(numbers));
  if (!topology.has_one_package()) name += fmt::format(" of package {}", cores.front()->package);
  return name;
}

// The cores by package, then the NUMA nodes.
std::string where(const Topology& topology, const std::vector<int>& cpus) {
  std::vector<std::vector<const Core*>> packages;
  std::vector<int> nodes;
  const auto is_touched = [&](const Core& core) {
    return std::ranges::any_of(core.cpus, [&](int cpu) { return std::binary_search(cpus.begin(), cpus.end(), cpu); });
  };
  for (const Core& core : topology.cores) {
    if (!is_touched(core)) continue;
    const auto same =
        std::ranges::find_if(packages, [&](const auto& package) { return package.front()->package == core.package; });
    (same == packages.end() ? packages.emplace_back() : *same).push_back(&core);
    if (nodes.empty() || nodes.back() != core.node) nodes.push_back(core.node);
  }
  std::string text;
  for (const auto& package : packages) text += name_of_cores(topology, package, cpus.size()) + ", ";
  return text + fmt::format("NUMA node{} {}", nodes.size() == 1 ? "" : "s", cpu_list_text(nodes));
}

std::vector<std::string> visible_of(const std::vector<Gpu>& gpus) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible_gpus(uuids_of(gpus), visible != nullptr ? std::optional<std::string_view>(visible) : std::nullopt);
}

Binding bind_automatically(RankNeeds needs, const std::function<int(int)>& threads, Placement& placement) {
  const int ranks = needs.ranks;
  const Allowance allowance{.allowed = allowed_cpus(), .offered = offered_cpus(), .quota = cpu_quota()};
  Binding binding{.cpus = CpuSets(static_cast<std::size_t>(ranks)), .why_not = why_not_bound(allowance, ranks)};
  if (!binding.why_not.empty()) return binding;
  placement.topology = read_topology(allowance.allowed);
  needs.threads = threads(static_cast<int>(allowance.allowed.size()) / ranks);
  return bind_to_shares(placement.topology, needs, placement.locks);
}

// Cores that other jobs hold are left to them if there are enough without these.
Binding bind_as_asked(const JobSpec& spec, Placement& placement) {
  const int ranks = spec.local_ranks();
  placement.topology = read_topology(allowed_cpus());
  const Topology free{placement.locks.take(placement.topology.cores)};
  const bool avoid = spec.binding.to == BindingSpec::To::core && free.cores.size() >= static_cast<std::size_t>(ranks);
  Binding binding = plan_binding(avoid ? free : placement.topology, spec.binding, ranks);
  std::vector<int> used;
  for (const std::vector<int>& cpus : binding.cpus) used.insert(used.end(), cpus.begin(), cpus.end());
  std::ranges::sort(used);
  placement.locks.keep(used);
  return binding;
}

}  // namespace

Binding plan_binding(const Topology& topology, const BindingSpec& spec, int local_ranks) {
  const auto ranks = static_cast<std::size_t>(local_ranks);
  Binding binding{.cpus = CpuSets(ranks)};
  if (spec.to == BindingSpec::To::none) return binding;

  if (spec.to == BindingSpec::To::list) {
    const CpuSets lists = checked_lists(topology, spec.lists);
    for (std::size_t rank = 0; rank < ranks; ++rank) binding.cpus[rank] = lists[rank % lists.size()];
    return binding;
  }
  const std::vector<Core> order = dealing_order(topology, spec.map_by);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const Core& core = order[rank % order.size()];
    binding.cpus[rank] = spec.to == BindingSpec::To::core ? core.cpus : cpus_of_node(topology, core.node);
  }
  if (ranks > order.size()) {
    binding.notice = fmt::format("{} ranks share {} core{}", ranks, order.size(), order.size() == 1 ? "" : "s");
  }
  return binding;
}

std::vector<std::string> describe_bindings(const Topology& topology, const Binding& binding,
                                           std::span<const int> ranks) {
  std::vector<std::string> lines;
  const std::vector<int> all = topology.cpus();
  for (std::size_t local = 0; local < binding.cpus.size(); ++local) {
    const bool is_bound = !binding.cpus[local].empty();
    const std::vector<int>& cpus = is_bound ? binding.cpus[local] : all;
    const std::string unbound = "not bound" + (binding.why_not.empty() ? "" : ": " + binding.why_not);
    lines.push_back(fmt::format("rank {}: CPU{} {} ({})", ranks[local], cpus.size() == 1 ? "" : "s",
                                cpu_list_text(cpus), is_bound ? where(topology, cpus) : unbound));
  }
  return lines;
}

CpuMask::CpuMask(std::span<const int> cpus) {
  if (cpus.empty()) return;
  const int size = *std::ranges::max_element(cpus) + 1;
  words_.resize(CPU_ALLOC_SIZE(size) / sizeof(unsigned long));
  auto* mask = reinterpret_cast<cpu_set_t*>(words_.data());
  for (const int cpu : cpus) {
    CPU_SET_S(static_cast<unsigned>(cpu), words_.size() * sizeof(unsigned long), mask);
  }
}

int CpuMask::apply() const noexcept {
  if (words_.empty()) return 0;
  const auto* mask = reinterpret_cast<const cpu_set_t*>(words_.data());
  return ::sched_setaffinity(0, words_.size() * sizeof(unsigned long), mask) == 0 ? 0 : errno;
}

int visible_gpu_count() {
  return static_cast<int>(visible_of(find_gpus()).size());
}

Placement place_ranks(const JobSpec& spec, const std::function<int(int)>& threads) {
  Placement placement;
  const int ranks = spec.local_ranks();
  if (ranks == 0) return placement;
  std::vector<int> device_nodes;
  if (spec.binding.gpus_per_rank > 0) {
    const std::vector<Gpu> gpus = find_gpus();
    placement.gpus = assign_gpus(visible_of(gpus), spec.binding.gpus_per_rank, spec.local_places());
    device_nodes = nodes_of_devices(placement.gpus, gpus);
  }
  Binding& binding = placement.binding;
  if (spec.binding.to == BindingSpec::To::automatic)
    binding = bind_automatically({.ranks = ranks, .nodes = std::move(device_nodes)}, threads, placement);
  else if (spec.binding.to == BindingSpec::To::none)
    binding.cpus.resize(static_cast<std::size_t>(ranks));
  else
    binding = bind_as_asked(spec, placement);
  if (!binding.notice.empty()) placement.notices.push_back(binding.notice);
  for (const std::vector<int>& cpus : binding.cpus) placement.masks.emplace_back(cpus);
  if (spec.inspect.report_bindings && placement.topology.cores.empty())
    placement.topology = read_topology(allowed_cpus());
  return placement;
}

}  // namespace col::launch

#include "launch/place/placement.hpp"

#include <cstdlib>
#include <optional>
#include <string_view>

#include "launch/place/cpu_quota.hpp"
#include "launch/place/gpus.hpp"

namespace col::launch {
namespace {

std::vector<std::string> visible_here() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible_gpus(gpu_uuids(), visible != nullptr ? std::optional<std::string_view>(visible) : std::nullopt);
}

}  // namespace

int visible_gpu_count() {
  return static_cast<int>(visible_here().size());
}

Placement place_ranks(const JobSpec& spec) {
  Placement placement;
  const int ranks = spec.local_ranks();
  if (ranks == 0) return placement;
  if (spec.binding.to != BindingSpec::To::none || spec.inspect.report_bindings) {
    placement.topology = read_topology(allowed_cpus());
    placement.binding = plan_binding(placement.topology, spec.binding, ranks);
    if (!placement.binding.notice.empty()) placement.notices.push_back(placement.binding.notice);
  }
  if (spec.binding.to != BindingSpec::To::none) {
    for (const std::vector<int>& cpus : placement.binding.cpus) placement.masks.emplace_back(cpus);
  }
  if (spec.binding.gpus_per_rank > 0) placement.gpus = assign_gpus(visible_here(), spec.binding.gpus_per_rank, ranks);
  return placement;
}

}  // namespace col::launch

#include "colcheck/engine/gpus.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <utility>
#include <vector>

namespace col::colcheck {
namespace {

// Two containers may have one host name, and two hosts the same.
std::string host_identity() {
  std::string text;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), text);
  return text;
}

}  // namespace

RankGpu look_for_gpu(const ContextSpec& rank) {
  RankGpu found{.host = host_identity()};
  try {
    found.gpu = tools::facts_of_gpu(tools::gpu_of(rank));
    found.of_host = tools::gpus().devices();
  } catch (const Error& error) {
    found.why_not = error.message();
    return found;
  }
  found.why_no_nccl = nccl_unavailable_reason();
  if (found.why_no_nccl.empty()) found.nccl = tools::facts_of_nccl();
  return found;
}

std::size_t ranks_with_own_gpu(std::span<const RankGpu> gpus) {
  std::set<std::pair<std::string, std::string>> taken;
  const auto shares = std::find_if(gpus.begin(), gpus.end(),
                                   [&](const RankGpu& g) { return !taken.emplace(g.host, g.gpu.bus).second; });
  return static_cast<std::size_t>(shares - gpus.begin());
}

bool may_share_gpus() {
  const char* const value = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  return value != nullptr && std::strcmp(value, "1") == 0;
}

std::string list_of(std::span<const RankGpu> gpus) {
  std::vector<tools::RankOnGpu> ranks;
  for (const RankGpu& rank : gpus) ranks.push_back({rank.host, rank.gpu.text()});
  return tools::gpus_by_rank(ranks);
}

bool has_fake(std::span<const RankGpu> gpus) {
  return std::any_of(gpus.begin(), gpus.end(), [](const RankGpu& g) { return g.gpu.is_fake(); });
}

}  // namespace col::colcheck

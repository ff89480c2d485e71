#include "colcheck/gpus.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

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
  std::map<std::pair<std::string, std::string>, std::vector<std::size_t>> users;  // by host and GPU
  std::vector<std::string> parts;
  for (std::size_t rank = 0; rank < gpus.size(); ++rank)
    users[{gpus[rank].host, gpus[rank].gpu.text()}].push_back(rank);
  for (const auto& [where, ranks] : users)
    parts.push_back(
        fmt::format("{} {}: {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "), where.second));
  return fmt::format("{}", fmt::join(parts, "; "));
}

bool has_fake(std::span<const RankGpu> gpus) {
  return std::any_of(gpus.begin(), gpus.end(), [](const RankGpu& g) { return g.gpu.is_fake(); });
}

}  // namespace col::colcheck

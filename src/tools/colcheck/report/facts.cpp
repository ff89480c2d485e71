#include "colcheck/report/facts.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/text.hpp"

namespace col::colcheck {

std::vector<std::pair<std::string, std::string>> facts_of(const Results& results) {
  std::vector<std::string> names;
  for (const UsedBackend& used : results.backends) {
    if (std::find(names.begin(), names.end(), used.name) == names.end()) names.push_back(used.name);
  }
  std::vector<std::pair<std::string, std::string>> facts = {
      {"command", results.command},
      {"version", results.version},
      {"effort", results.effort},
      {"seed", fmt::format("{:#x}", results.seed)},
      {"started", results.started},
      {"took", tools::in_words(results.seconds)},
      {"host", results.host},
      {"CPUs", std::to_string(results.cpus)},
      {"world", fmt::format("{}{}", tools::counted(static_cast<std::size_t>(std::max(results.world_size, 0)), "rank"),
                            results.launcher.empty() ? "" : ", started by " + results.launcher)},
      {"ranks of the groups", ranges(results.ranks)},
      {"backends", fmt::format("{}", fmt::join(names, ", "))},
      {"GPUs", list_of(results.gpus)},
      {"NCCL", results.gpus.empty() ? "" : results.gpus.front().nccl},
      {"limits", fmt::format("{}", fmt::join(results.limits, "; "))}};
  std::erase_if(facts, [](const auto& fact) { return fact.second.empty(); });
  return facts;
}

std::string ranges(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t first = 0, last = 0; first < numbers.size(); first = last + 1) {
    for (last = first; last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1;) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", numbers[first]);
    if (last > first) text += fmt::format("-{}", numbers[last]);
  }
  return text;
}

std::string found_by(const CaseResult& result) {
  return result.rank >= 0 ? fmt::format("rank {}: {}", result.rank, result.text) : result.text;
}

}  // namespace col::colcheck

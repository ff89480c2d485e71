#include "launch/place/cpu_list.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "common/numbers.hpp"

namespace col::launch {

std::optional<std::vector<int>> parse_cpu_list(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  std::vector<int> cpus;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const std::size_t dash = part.find('-');
    const auto first = tools::parse_whole_number(part.substr(0, dash), 0, kMaxCpus - 1);
    const auto last =
        dash == std::string_view::npos ? first : tools::parse_whole_number(part.substr(dash + 1), 0, kMaxCpus - 1);
    if (!first || !last || *last < *first) return std::nullopt;
    for (int cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    // Many ranges that overlap must not grow without a limit.
    if (cpus.size() > static_cast<std::size_t>(2 * kMaxCpus)) return std::nullopt;
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

std::string cpu_list_text(std::span<const int> cpus) {
  std::string text;
  for (std::size_t begin = 0; begin < cpus.size();) {
    std::size_t end = begin + 1;
    while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += std::to_string(cpus[begin]);
    if (end - begin > 1) text += fmt::format("-{}", cpus[end - 1]);
    begin = end;
  }
  return text;
}

}  // namespace col::launch

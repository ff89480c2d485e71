#include "group/adopt/places.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <numeric>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "core/joined.hpp"
#include "group/adopt/meeting_point.hpp"
#include "group/call/operation.hpp"

namespace col::group::adopt {
namespace {

// Of a line that tells of missing ranks.
constexpr std::size_t kMostHosts = 8;

std::optional<std::size_t> number(std::string_view text) {
  std::size_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || after != end || text.empty()) return std::nullopt;
  return value;
}

// "01-03,7" as 01, 02, 03, 7; nothing if it is no such list.
std::vector<std::string> numbers_of(std::string_view ranges, std::size_t most) {
  std::vector<std::string> numbers;
  while (!ranges.empty()) {
    const std::string_view range = ranges.substr(0, ranges.find(','));
    ranges.remove_prefix(std::min(range.size() + 1, ranges.size()));
    const std::string_view first = range.substr(0, range.find('-'));
    const std::string_view last = first.size() == range.size() ? first : range.substr(first.size() + 1);
    const auto begin = number(first), end = number(last);
    if (!begin || !end || *end < *begin || *end - *begin >= most - std::min(most, numbers.size())) return {};
    for (std::size_t value = *begin; value <= *end; ++value)
      numbers.push_back(fmt::format("{:0{}}", value, first.size()));
  }
  return numbers;
}

// One element of a list: "rack[1-2]n[1-8]-ib". Nothing if it is none.
std::vector<std::string> hosts_of_element(std::string_view element, std::size_t most) {
  std::vector<std::string> hosts{""};
  while (!element.empty() && !hosts.empty()) {
    std::vector<std::string> ends;
    if (element.front() == '[') {
      const auto close = element.find(']');
      if (close == std::string_view::npos) return {};
      ends = numbers_of(element.substr(1, close - 1), most);
      element.remove_prefix(close + 1);
    } else {
      const auto plain = std::min(element.find('['), element.size());
      ends.emplace_back(element.substr(0, plain));
      element.remove_prefix(plain);
    }
    if (ends.size() > most / hosts.size()) return {};
    std::vector<std::string> longer;
    for (const std::string& host : hosts) {
      for (const std::string& end : ends) longer.push_back(host + end);
    }
    hosts = std::move(longer);
  }
  if (hosts.size() == 1 && hosts.front().empty()) return {};
  return hosts;
}

std::vector<std::string> by_slurm(const LaunchedRank& own, const Lookup& lookup) {
  const auto text = [&](std::string_view name) { return lookup(name).value_or(""); };
  const auto world = static_cast<std::size_t>(own.world_size);
  const std::vector<std::string> hosts = hosts_of_list(text("SLURM_STEP_NODELIST"), world);
  const std::string distribution = text("SLURM_DISTRIBUTION");
  if (hosts.empty() || lookup("SLURM_HET_SIZE") || distribution.starts_with("arbitrary")) return {};
  std::vector<int> counts;
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    const auto count = tasks_on_node(text("SLURM_STEP_TASKS_PER_NODE"), static_cast<int>(host));
    if (!count) return {};
    counts.push_back(*count);
  }
  if (std::accumulate(counts.begin(), counts.end(), std::size_t{0}) != world) return {};

  // What this host has shows how the ranks go; one rank alone may show nothing.
  const auto here = std::find(hosts.begin(), hosts.end(), text("SLURMD_NODENAME")) - hosts.begin();
  if (static_cast<std::size_t>(here) == hosts.size()) return {};
  std::vector<int> expected(static_cast<std::size_t>(counts[static_cast<std::size_t>(here)]));
  std::iota(expected.begin(), expected.end(), std::accumulate(counts.begin(), counts.begin() + here, 0));
  if (ranks_on_node(text("SLURM_GTIDS")) != expected) return {};
  const bool shows = expected.size() > 1 || distribution.starts_with("block") ||
                     std::all_of(counts.begin(), counts.end(), [](int count) { return count == 1; });
  if (!shows) return {};

  std::vector<std::string> of_ranks;
  for (std::size_t host = 0; host < hosts.size(); ++host)
    of_ranks.insert(of_ranks.end(), static_cast<std::size_t>(counts[host]), hosts[host]);
  return of_ranks;
}

std::vector<std::string> by_kubernetes(const LaunchedRank& own, const std::string& own_name) {
  const std::string pod = own_name.substr(0, own_name.find('.'));
  const std::string end = fmt::format("-{}", own.rank);
  if (pod.size() <= end.size() || !pod.ends_with(end)) return {};
  std::vector<std::string> pods;
  for (int rank = 0; rank < own.world_size; ++rank)
    pods.push_back(fmt::format("{}-{}", pod.substr(0, pod.size() - end.size()), rank));
  return pods;
}

}  // namespace

std::vector<std::string> hosts_of_ranks(const LaunchedRank& own, const Lookup& lookup,
                                        const std::function<std::string()>& own_name) {
  if (own.launcher == "slurm") return by_slurm(own, lookup);
  if (own.launcher == "kubernetes") return by_kubernetes(own, own_name());
  return {};
}

std::vector<std::string> hosts_of_list(std::string_view list, std::size_t most) {
  std::vector<std::string> hosts;
  while (!list.empty()) {
    // A comma between brackets does not end the element.
    std::size_t end = 0;
    for (bool is_inside = false; end < list.size() && (is_inside || list[end] != ','); ++end)
      is_inside = list[end] == '[' || (is_inside && list[end] != ']');
    const auto more = hosts_of_element(list.substr(0, end), most);
    if (more.empty() || more.size() > most - hosts.size()) return {};
    hosts.insert(hosts.end(), more.begin(), more.end());
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return hosts;
}

std::string ranks_on_hosts(const std::vector<int>& ranks, std::span<const std::string> hosts) {
  if (ranks.empty() || static_cast<std::size_t>(ranks.back()) >= hosts.size()) return ranks_text(ranks);
  std::vector<std::pair<std::string, std::vector<int>>> by_host;
  for (const int rank : ranks) {
    const std::string& host = hosts[static_cast<std::size_t>(rank)];
    if (by_host.empty() || by_host.back().first != host) by_host.push_back({host, {}});
    by_host.back().second.push_back(rank);
  }
  std::vector<std::string> parts;
  std::size_t named = 0;
  for (const auto& [host, there] : by_host) {
    if (parts.size() == kMostHosts) break;
    parts.push_back(fmt::format("{} on {}", ranks_text(there), host));
    named += there.size();
  }
  return fmt::format("{}{}", core::joined(parts, ", "),
                     named < ranks.size() ? fmt::format(" and {} more", ranks.size() - named) : "");
}

}  // namespace col::group::adopt

#include "launch/report/compare_hosts.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace col::launch {
namespace {

// From fewer calls, nothing is concluded.
constexpr std::size_t kEnough = 20;

struct Member {
  const RankStory* rank;
  CallSite* site;
};
using Members = std::vector<Member>;

// Looks random, and is the same on all hosts. Of numbers themselves, a kind of call may have only odd ones.
std::uint64_t mixed(std::uint64_t number) {
  number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
  number = (number ^ number >> 27) * 0x94d049bb133111eb;
  return number ^ number >> 31;
}

double seconds_of(std::uint64_t ns) {
  return static_cast<double>(ns) / 1e9;
}

// The time of a message between the two hosts that are furthest from each other.
double doubt_of(const Members& members) {
  std::map<int, double> by_node;
  for (const Member& member : members) {
    double& distance = by_node[member.rank->node_rank];
    distance = std::max(distance, member.rank->times.distance.value_or(0));
  }
  std::vector<double> distances;
  for (const auto& [node, distance] : by_node) distances.push_back(distance);
  std::ranges::sort(distances, std::greater<>());
  return distances[0] + distances[1];
}

// Whether all ranks of their hosts that are in the group are there. One of them may have samples of another group of
// the same name, and then somebody else would be taken for the last one.
bool are_all(const Members& members) {
  std::map<int, int> here;
  for (const Member& member : members) ++here[member.rank->node_rank];
  return std::ranges::all_of(
      members, [&](const Member& member) { return member.site->sampled.members == here[member.rank->node_rank]; });
}

// The calls that all have: for each how long it took them, in the order of the members.
std::vector<std::vector<std::uint64_t>> common_calls(const Members& members) {
  std::map<std::uint64_t, std::vector<std::uint64_t>> calls;
  for (std::size_t i = 0; i < members.size(); ++i) {
    for (const auto& [number, took] : members[i].site->sampled.calls) {
      std::vector<std::uint64_t>& times = calls[number];
      if (times.size() == i) times.push_back(took);
    }
  }
  std::vector<std::vector<std::uint64_t>> common;
  for (auto& [number, times] : calls) {
    if (times.size() == members.size()) common.push_back(std::move(times));
  }
  return common;
}

void compare(const Members& members) {
  const std::vector<std::vector<std::uint64_t>> calls = common_calls(members);
  if (calls.size() < kEnough) return;
  const double doubt = doubt_of(members);
  std::set<int> nodes;
  double all_calls = 0;  // of one member, on average
  for (const Member& member : members) {
    nodes.insert(member.rank->node_rank);
    all_calls += static_cast<double>(member.site->calls) / static_cast<double>(members.size());
  }
  // Those that all have sampled stand for all.
  const double weight = all_calls / static_cast<double>(calls.size());
  std::vector<double> last(members.size());
  for (const Member& member : members) {
    CallSite& site = *member.site;
    site.compared = static_cast<std::uint64_t>(std::llround(all_calls));
    site.waited = site.late = 0;
    site.hosts = static_cast<int>(nodes.size());
    site.doubt = doubt;
  }
  for (const std::vector<std::uint64_t>& took : calls) {
    const auto least = static_cast<std::size_t>(std::ranges::min_element(took) - took.begin());
    double waited = 0;
    bool is_clear = true;
    for (std::size_t i = 0; i < took.size(); ++i) {
      const double longer = seconds_of(took[i] - took[least]);
      members[i].site->waited += weight * longer;
      waited += longer;
      const bool is_near = members[i].rank->node_rank == members[least].rank->node_rank;
      is_clear = is_clear && (i == least || longer > (is_near ? 0 : doubt));
    }
    if (!is_clear) continue;
    last[least] += weight;
    members[least].site->late += weight * waited / static_cast<double>(took.size() - 1);
  }
  for (std::size_t i = 0; i < members.size(); ++i)
    members[i].site->last = static_cast<std::uint64_t>(std::llround(last[i]));
}

}  // namespace

void SampledCalls::add(std::uint64_t of_token, std::uint64_t number, std::uint64_t took_ns) {
  // A program may have several groups of one name: the first one stands for them.
  if (token == 0) token = of_token;
  if (token != of_token || !keeps(number)) return;
  calls.emplace_back(number, took_ns);
  while (calls.size() > kMost) thin();
}

void SampledCalls::thin() {
  stride *= 2;
  std::erase_if(calls, [this](const auto& call) { return !keeps(call.first); });
}

bool SampledCalls::keeps(std::uint64_t number) const {
  return (mixed(number) & (stride - 1)) == 0;
}

void compare_hosts(JobStory& story) {
  const bool all_watch =
      std::ranges::all_of(story.ranks, [](const RankStory& rank) { return rank.times.distance.has_value(); });
  std::map<std::pair<std::uint64_t, std::string>, Members> groups;
  for (RankStory& rank : story.ranks) {
    for (CallSite& site : rank.times.sites) {
      if (site.sampled.token != 0) groups[{site.sampled.token, site.op}].push_back({&rank, &site});
    }
  }
  for (const auto& [key, members] : groups) {
    const int first_node = members.front().rank->node_rank;
    const bool has_several =
        std::ranges::any_of(members, [&](const Member& member) { return member.rank->node_rank != first_node; });
    if (all_watch && has_several && are_all(members)) compare(members);
    for (const Member& member : members) member.site->sampled = {.token = member.site->hosts > 1 ? key.first : 0};
  }
}

}  // namespace col::launch

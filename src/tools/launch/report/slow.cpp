#include "launch/report/report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/text.hpp"

namespace col::launch {
namespace {

// From fewer calls, nothing is concluded.
constexpr std::uint64_t kEnoughCalls = 20;
// So much more often than by chance, of what there is room for, a rank must be last.
constexpr double kMoreThanChance = 0.2;
// Of the time that was looked at, others must have waited so much for it.
constexpr double kNoticeable = 0.05;
// A part of the time that says something, though it is not the most.
constexpr double kOften = 0.2;
// From this size on, calls are timed from their beginning, so that a rate means something.
constexpr std::uint64_t kTimedBytes = std::uint64_t{32} << 10;

// "2.1 ms", "35 us", "1.20 s".
std::string short_time(double seconds) {
  if (seconds < 0.9995e-3) return fmt::format("{:.0f} us", seconds * 1e6);
  if (seconds < 0.9995) return fmt::format("{:.1f} ms", seconds * 1e3);
  return tools::in_words(seconds);
}

std::string in_percent(double share) {
  return fmt::format("{:.0f} %", share * 100);
}

std::string rate_text(double bytes_per_second) {
  constexpr std::array<std::string_view, 4> kUnits = {"KB/s", "MB/s", "GB/s", "TB/s"};
  double value = bytes_per_second / 1e3;
  std::size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < kUnits.size(); ++unit) value /= 1e3;
  return fmt::format("{:.{}f} {}", value, value < 9.95 ? 1 : 0, kUnits[unit]);
}

// All ranks in one group and kind of call that were compared with one another.
struct SiteRow {
  std::vector<std::pair<const RankStory*, const CallSite*>> ranks;
  std::uint64_t compared = 0;

  std::pair<const RankStory*, const CallSite*> slowest() const {
    return *std::ranges::max_element(ranks, {}, [](const auto& one) { return one.second->late; });
  }
  template <class Value>
  double mean(const Value& value) const {
    double sum = 0;
    for (const auto& [rank, site] : ranks) sum += static_cast<double>(value(*site));
    return sum / static_cast<double>(ranks.size());
  }
};

// Those of one host, or of all hosts of the group.
std::string compared_with(const RankStory& rank, const CallSite& site) {
  return site.hosts > 1 ? fmt::format("{} hosts\n{:x}", site.hosts, site.sampled.token) : rank.host;
}

using SiteRows = std::map<std::pair<std::string, std::string>, std::map<std::string, SiteRow>>;

SiteRows site_rows(const JobStory& story) {
  SiteRows rows;
  for (const RankStory& rank : story.ranks) {
    for (const CallSite& site : rank.times.sites) {
      SiteRow& row = rows[{site.group, site.op}][compared_with(rank, site)];
      row.ranks.push_back({&rank, &site});
      row.compared = std::max(row.compared, site.compared);
    }
  }
  return rows;
}

bool is_slow(const SiteRow& row, const RankStory& rank, const CallSite& site) {
  if (row.ranks.size() < 2 || site.compared < kEnoughCalls || rank.times.own.seconds <= 0) return false;
  const double chance = 1 / static_cast<double>(row.ranks.size());
  const double share = static_cast<double>(site.last) / static_cast<double>(site.compared);
  const double cost = site.late / rank.times.own.seconds;
  // The root of a broadcast comes last by its nature, as the others wait for its data: it is slow if it was elsewhere.
  const double outside = rank.times.own.outside / rank.times.own.seconds;
  return share - chance >= kMoreThanChance * (1 - chance) && cost >= kNoticeable && outside >= cost / 2;
}

// What is known of the reason: what its main thread did most.
std::string reason_of(const OwnTime& own) {
  const double cpu = std::min(own.cpu / own.seconds, 1.0), queued = std::min(own.queued / own.seconds, 1.0);
  if (cpu <= 0 && queued <= 0) return "what it did meanwhile is not known here";
  const double asleep = std::max(0.0, 1 - cpu - queued);
  if (queued >= cpu && queued >= asleep)
    return fmt::format("its processor is busy: it was ready to run, and waited for a processor, for {} of the time",
                       in_percent(queued));
  const std::string also =
      queued >= kOften ? fmt::format(", and waited for one for {}", in_percent(queued)) : std::string();
  if (cpu >= asleep)
    return fmt::format("it computes: its main thread was on a processor for {} of the time{}", in_percent(cpu), also);
  return fmt::format(
      "it sleeps, or waits for something that is not of col, such as its data: its main thread was on a processor for "
      "{} of the time{}",
      in_percent(cpu), also);
}

Slow describe_slow(const JobStory& story, const RankStory& rank, const CallSite& site) {
  Slow slow{.rank = rank.rank, .group = site.group, .op = site.op, .last = site.last, .compared = site.compared};
  slow.late = site.late / static_cast<double>(std::max<std::uint64_t>(site.last, 1));
  slow.sentence = fmt::format(
      "rank {}{} was last in {} of {} {}s of group '{}', and the others waited {} for it then{}, "
      "{} in all; {}",
      rank.rank, story.nodes > 1 ? " (host " + tools::one_line(rank.host) + ")" : "",
      in_percent(static_cast<double>(site.last) / static_cast<double>(site.compared)), tools::grouped(site.compared),
      tools::one_line(site.op), tools::one_line(site.group), short_time(slow.late),
      site.hosts > 1 ? ", to within " + short_time(site.doubt) : "", short_time(site.late), reason_of(rank.times.own));
  return slow;
}

std::string last_text(const SiteRow& row) {
  const auto [rank, site] = row.slowest();
  if (row.compared == 0 || site->last == 0) return "";
  const auto last = static_cast<double>(site->last);
  return fmt::format("rank {}: {}, by {}", rank->rank, in_percent(last / static_cast<double>(site->compared)),
                     short_time(site->late / last));
}

std::string data_rate(const SiteRow& row) {
  const double calls = row.mean([](const CallSite& site) { return site.calls; });
  const double bytes = row.mean([](const CallSite& site) { return site.bytes; });
  const double moving = row.mean([](const CallSite& site) { return site.seconds - site.waited; });
  if (calls < 1 || bytes / calls < static_cast<double>(kTimedBytes) || moving <= 0) return "";
  return rate_text(bytes / moving);
}

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

// True if all ranks of their hosts that are in the group are there. One of them may have samples of another group of
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
  // The calls that all have sampled stand for all.
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

std::optional<Slow> find_slow(const JobStory& story) {
  const SiteRows rows = site_rows(story);
  std::pair<const RankStory*, const CallSite*> worst{nullptr, nullptr};
  for (const auto& [key, hosts] : rows) {
    for (const auto& [host, row] : hosts) {
      const auto [rank, site] = row.slowest();
      if (is_slow(row, *rank, *site) && (worst.second == nullptr || site->late > worst.second->late))
        worst = {rank, site};
    }
  }
  if (worst.first == nullptr) return std::nullopt;
  return describe_slow(story, *worst.first, *worst.second);
}

tools::Part slow_part(const JobStory& story) {
  const SiteRows rows = site_rows(story);
  if (rows.empty()) return {};
  const bool several_hosts = story.nodes > 1;
  tools::Table table{.columns = {{"group"}, {"call"}}};
  if (several_hosts) table.columns.push_back({"host"});
  for (const char* title : {"calls", "took", "waiting", "last to come", "data"}) table.columns.push_back({title});
  for (const auto& [key, hosts] : rows) {
    for (const auto& [host, row] : hosts) {
      tools::TextRow& line = table.rows.emplace_back(tools::TextRow{{key.first}, {key.second}});
      if (several_hosts) line.push_back({host.substr(0, host.find('\n'))});
      const double calls = row.mean([](const CallSite& site) { return site.calls; });
      line.insert(line.end(),
                  {{tools::grouped(static_cast<std::size_t>(calls + 0.5))},
                   {short_time(row.mean([](const CallSite& site) { return site.seconds; }))},
                   {row.compared == 0 ? "" : short_time(row.mean([](const CallSite& site) { return site.waited; }))},
                   {last_text(row)},
                   {data_rate(row)}});
    }
  }
  tools::Part part{.tables = {std::move(table)}};
  if (const auto slow = find_slow(story)) part.lead.push_back({slow->sentence});
  return part;
}

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

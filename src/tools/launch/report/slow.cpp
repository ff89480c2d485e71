#include "launch/report/slow.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <string_view>
#include <utility>

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

}  // namespace col::launch
